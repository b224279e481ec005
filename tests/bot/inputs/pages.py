"""Web pages as sites send them: articles, and what stands in their place, from what the sites' own makers send."""

from html import escape

from bot.inputs.child import Extract, extract
from bot.inputs.files import FileReader
from bot.inputs.kinds import Extractable

WORDS = "Paragraph {} of the article, with enough words in it to be taken for an article by all that read pages."


def reader() -> FileReader:
    """Return a reader that starts no process for each page."""

    async def here(kind: Extractable, content: bytes) -> Extract:
        return extract(kind, content)

    return FileReader(extract=here)


def page(body: str, title: str = "Pumps", head: str = "") -> str:
    """Return a page of some markup."""
    return f"<!doctype html><html><head><title>{escape(title)}</title>{head}</head><body>{body}</body></html>"


def article(
    text: str = "Water boils at a hundred degrees.",
    around: str = "",
    title: str = "Pumps",
    paragraphs: int = 4,
) -> str:
    """Return an article of some ninety words, with markup around it."""
    more = "".join(f"<p>{WORDS.format(number)}</p>" for number in range(paragraphs))
    navigation = "<nav><a href='/'>Home</a> <a href='/about'>About</a></nav>"
    return page(
        f"{navigation}{around}<article><h1>{title}</h1><p>{text}</p>{more}</article><footer>Imprint</footer>",
        title,
    )


FORM = "<form action='/login' method='post'><label>Email</label><input name='user'><label>Password</label><input type='password' name='word'><button>Log in</button><a href='/reset'>Forgot your password?</a></form>"
BANNER = "<div class='banner'><p>We use cookies to personalise content and ads, to provide social media features and to analyse our traffic.</p><button>Accept all</button><button>Reject all</button></div>"
DISQUS = "<div id='disqus_thread'></div><script src='/embed.js'></script><noscript>Please enable JavaScript to view the comments powered by Disqus.</noscript>"
MANAGER = "<noscript><iframe src='https://www.googletagmanager.com/ns.html'></iframe></noscript><script>window.dataLayer = []</script>"

LOGINS = {
    "form": page(
        f"<h1>Sign in</h1>{FORM}<p>New here? <a href='/join'>Create an account</a></p>", "Sign in"
    ),
    "GitLab": page(
        f"<h1>GitLab.com</h1>{FORM}<p>By signing in you accept the Terms of Use and acknowledge the Privacy Statement and Cookie Policy.</p><p>or sign in with</p><a href='/g'>Google</a><a href='/h'>GitHub</a><footer>Explore Help About GitLab Community forum</footer>",
        "Sign in · GitLab",
    ),
    "WordPress": page(
        "<div id='login'><h1><a href='/'>Powered by WordPress</a></h1><form name='loginform'><label>Username or Email Address</label><input name='log'><label>Password</label><input type='password' name='pwd'><input type='submit' value='Log In'></form><p><a href='/x'>Lost your password?</a></p><p><a href='/'>&larr; Go to Pumps</a></p></div>",
        "Log In ‹ Pumps — WordPress",
    ),
    "Jira": page(
        f"<header><h1>Log in</h1></header><div>Welcome to Jira</div>{FORM}<p>Not a member? To request an account, please contact your Jira administrators.</p>",
        "Log in - Jira",
    ),
    "Confluence": page(f"<div class='aui-page'><h1>Confluence</h1>{FORM}</div>", "Log In - Confluence"),
    "Google": page(
        "<div><h1>Sign in</h1><span>Use your Google Account</span><form><input type='email'><button>Next</button></form><p>Not your computer? Use Guest mode to sign in privately. Learn more about using Guest mode</p></div><script src='/a.js'></script>",
        "Sign in - Google Accounts",
    ),
    "Microsoft": page(
        "<div id='lightbox'><form><h1>Sign in</h1><input type='email'><input name='passwd' type='password' class='moveOffScreen'><p>No account? Create one!</p></form></div>",
        "Sign in to your account",
    ),
    "LinkedIn": page(
        "<main><h1>Join LinkedIn</h1><form><input name='email'><input type='Password'><button>Agree &amp; Join</button></form><p>Already on LinkedIn? <a href='/login'>Sign in</a></p></main>",
        "Sign Up | LinkedIn",
    ),
    "Facebook": page(f"<div>You must log in to continue.</div>{FORM}", "Log into Facebook"),
    "German": page(
        "<h1>Anmelden</h1><form><input name='u'><input type='password'><button>Weiter</button></form><p>Noch kein Konto? Jetzt registrieren.</p>",
        "Anmelden | Stadtwerke",
    ),
    "French": page(
        "<h1>Connexion</h1><form><input type='password'></form><p>Mot de passe oublié ?</p>",
        "Se connecter - Le Journal",
    ),
    "Japanese": page(
        "<h1>ログイン</h1><form><input type='password'></form><p>パスワードを忘れた方はこちら</p>",
        "ログイン | 社内ポータル",
    ),
    "members": page(
        "<h1>Members only</h1><p>You must be logged in to view this page.</p><script src='/a.js'></script>",
        "Pumps",
    ),
    "no heading": page(
        "<img src='/logo.png'><form><input type='password'><button>Go</button></form><p>© Pumps Ltd</p>",
        "Intranet",
    ),
    "phpBB": page(
        f"<h1>Pump forum</h1><p>You need to login in order to view this forum.</p>{FORM}",
        "Pump forum - User Control Panel - Login",
    ),
}
ROBOTS = {
    "Cloudflare": page(
        "<div class='main-wrapper'><h1>example.org</h1><h2>Checking if the site connection is secure</h2><noscript><div>Enable JavaScript and cookies to continue</div></noscript><div>example.org needs to review the security of your connection before proceeding.</div></div><script>window._cf_chl_opt={}</script>",
        "Just a moment...",
    ),
    "Cloudflare, human": page(
        "<h1>example.org</h1><p>Verify you are human by completing the action below.</p><p>example.org needs to review the security of your connection before proceeding.</p>",
        "Just a moment...",
    ),
    "Cloudflare, bare": page(
        "<noscript><span id='challenge-error-text'>Enable JavaScript and cookies to continue</span></noscript><script>(function(){})()</script>",
        "Just a moment...",
    ),
    "Cloudflare, blocked": page(
        "<h1>Sorry, you have been blocked</h1><h2>You are unable to access example.org</h2><p>Why have I been blocked? This website is using a security service to protect itself from online attacks. The action you just performed triggered the security solution.</p><p>Cloudflare Ray ID: 82f4e001c91f3aff</p>",
        "Attention Required! | Cloudflare",
    ),
    "Imperva": page(
        "<h1>Pardon Our Interruption...</h1><p>As you were browsing something about your browser made us think you were a bot. There are a few reasons this might happen:</p><ul><li>You're a power user moving through this website with super-human speed.</li><li>You've disabled cookies in your web browser.</li><li>A third-party browser plugin, such as Ghostery or NoScript, is preventing JavaScript from running.</li></ul><p>To regain access, please make sure that cookies and JavaScript are enabled before reloading the page.</p>",
        "Pardon Our Interruption",
    ),
    "Incapsula": page(
        "<iframe src='/_Incapsula_Resource?x=1'>Request unsuccessful. Incapsula incident ID: 1234-5678</iframe>",
        "",
    ),
    "DataDome": page(
        "<p id='cmsg'>Please enable JS and disable any ad blocker</p><script src='https://ct.captcha-delivery.com/c.js'></script>",
        "example.org",
    ),
    "HUMAN": page(
        "<div id='px-captcha'></div><p>Press &amp; Hold to confirm you are a human (and not a bot).</p><p>Reference ID 0000</p>",
        "Access to this page has been denied",
    ),
    "Amazon": page(
        "<h4>Enter the characters you see below</h4><p>Sorry, we just need to make sure you're not a robot. For best results, please make sure your browser is accepting cookies.</p><form><input name='c'><button>Continue shopping</button></form>",
        "Amazon.com",
    ),
    "Google": page(
        "<p>Our systems have detected unusual traffic from your computer network. This page checks to see if it's really you sending the requests, and not a robot.</p>",
        "https://www.google.com/search?q=pumps",
    ),
    "Vercel": page(
        "<p>We're verifying your browser</p><a href='/w'>Website owner? Click here to fix</a><script src='/c.js'></script>",
        "Vercel Security Checkpoint",
    ),
    "Anubis": page(
        "<h1>Making sure you're not a bot!</h1><p>Loading...</p><p>You are seeing this because the administrator of this website has set up Anubis to protect the server against the scourge of AI companies aggressively scraping websites.</p><script src='/a.js'></script>",
        "Making sure you're not a bot!",
    ),
    "Reddit": page(
        "<h1>whoa there, pardner!</h1><p>You've been blocked by network security.</p><p>To continue, log in to your Reddit account or use your developer token.</p>",
        "Blocked",
    ),
    "Akamai": page(
        '<h1>Access Denied</h1><p>You don\'t have permission to access "http://example.org/" on this server.</p><p>Reference #18.2d351ab8.1557333295.a4e16ab</p>',
        "Access Denied",
    ),
    "DDoS-Guard": page(
        "<h1>Checking your browser before accessing example.org</h1><p>Please wait a few seconds. Once this check is complete, the website will open automatically</p>",
        "DDoS-Guard",
    ),
    "Bloomberg": page(
        "<h1>We've detected unusual activity from your computer network</h1><p>To continue, please click the box below to let us know you're not a robot.</p>",
        "Bloomberg - Are you a robot?",
    ),
}
COOKIES = {
    "Google": page(
        "<h1>Before you continue to Google</h1><div>We use cookies and data to</div><ul><li>Deliver and maintain Google services</li><li>Track outages and protect against spam, fraud, and abuse</li><li>Measure audience engagement and site statistics to understand how our services are used and enhance the quality of those services</li></ul><div>If you choose to “Accept all,” we will also use cookies and data to</div><ul><li>Develop and improve new services</li><li>Deliver and measure the effectiveness of ads</li></ul><form><input type='submit' value='Reject all'></form><form><input type='submit' value='Accept all'></form>",
        "Before you continue to Google Search",
    ),
    "publisher": page(
        "<h1>We value your privacy</h1><p>We and our 842 partners store and access information on a device, such as cookies, and process personal data.</p><p>With your permission we and our partners may use precise geolocation data for personalised advertising.</p><button>More options</button><button>Accept</button>",
        "Daily Pump",
    ),
    "wall": page(
        "<div><p>This site uses cookies. To read on, please accept all cookies or subscribe without advertising.</p><a href='/ok'>Accept and continue</a></div>",
        "The Pump",
    ),
    "German": page(
        "<h2>Willkommen</h2><p>Wir und unsere Partner brauchen Ihre Einwilligung, um Cookies und Tracking für personalisierte Werbung zu verwenden.</p><p>Mehr in der Datenschutzerklärung.</p><button>Alle akzeptieren</button>",
        "Der Pumpe",
    ),
    "French": page(
        "<p>Avec votre consentement, nous et nos partenaires utilisons des cookies pour la publicité et la mesure d'audience.</p><button>Tout accepter</button><button>Continuer sans accepter</button>",
        "Le Journal",
    ),
    "privacy gate": page(
        "<h1>Privacy Gate</h1><p>Wij gebruiken cookies en vergelijkbare technieken voor onze advertenties en onze partners, om je de beste ervaring te geven, en meer van zulke dingen.</p><button>Akkoord</button>",
        "Privacy Gate",
    ),
}
SHELLS = {
    "React": page(
        "<noscript>You need to enable JavaScript to run this app.</noscript><div id='root'></div><script src='/a.js'></script>",
        "App",
    ),
    "Vue": page(
        "<noscript><strong>We're sorry but pumps doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript><div id='app'></div><script src='/a.js'></script>",
        "pumps",
    ),
    "Next": page(
        "<div id='__next'></div><script id='__NEXT_DATA__' type='application/json'>{\"props\":{}}</script>",
        "App",
    ),
    "Angular": page("<app-root></app-root><script src='/main.js'></script>", "App"),
    "loading": page("<div class='spinner'>Loading...</div><script src='/a.js'></script>", "Board"),
    "nothing": page("<script src='/a.js'></script>", "App"),
    "X": page(
        "<div id='react-root'></div><noscript><h1>JavaScript is not available.</h1><p>We’ve detected that JavaScript is disabled in this browser. Please enable JavaScript or switch to a supported browser to continue using x.com. You can see a list of supported browsers in our Help Center.</p><p>Help Center Terms of Service Privacy Policy Cookie Policy Imprint Ads info © 2024 X Corp.</p></noscript><div>Something went wrong, but don’t fret — let’s give it another shot.</div><script src='/a.js'></script>",
        "X",
    ),
    "Discord": page(
        "<noscript>You need to enable JavaScript to run this app.</noscript><div id='app-mount'></div><script src='/a.js'></script>",
        "Discord",
    ),
    "German": page(
        "<noscript>Bitte aktivieren Sie JavaScript, um diese Seite zu sehen.</noscript><div id='main'></div>",
        "Portal",
    ),
    "Japanese": page(
        "<noscript>JavaScriptを有効にしてください。</noscript><div id='app'></div>", "ポータル"
    ),
    "with navigation": page(
        "<header><a href='/'>Home</a><a href='/pricing'>Pricing</a></header><div id='root'></div><footer>Imprint, terms and privacy</footer><script src='/a.js'></script>",
        "App",
    ),
    "visible": page(
        "<p>This page requires JavaScript. Please turn on JavaScript in your browser and refresh the page to view its content.</p>",
        "Notion",
    ),
    "Slack": page(
        "<div>For some reason, we couldn't load this. JavaScript is disabled or blocked by an extension; please enable JavaScript.</div><script src='/a.js'></script>",
        "Slack",
    ),
}
WALLS = {
    **{f"login: {name}": (html, "needs a login") for name, html in LOGINS.items()},
    **{f"robots: {name}": (html, "the site checks for robots") for name, html in ROBOTS.items()},
    **{
        f"cookies: {name}": (html, "asks for consent to cookies first") for name, html in COOKIES.items()
    },
    **{f"shell: {name}": (html, "needs JavaScript") for name, html in SHELLS.items()},
}
ARTICLES = {
    "plain": article(),
    "login in the header": article(around=f"<header>{FORM}</header>"),
    "login beside": article(around=f"<aside>{FORM}</aside>"),
    "login in a division": article(around=f"<div class='login-box'>{FORM}</div>"),
    "login in a dialog": article(around=f"<dialog>{FORM}</dialog>"),
    "everything in one form": page(
        f"<form id='aspnetForm'><header><input type='password'></header>{'<p>' + WORDS + '</p>'}{'<p>Another. ' + WORDS * 14 + '</p>'}</form>"
    ),
    "short, login in the header": page(
        f"<header>{FORM}</header><main><h1>Pump 7</h1><p>Pump 7 is out of order until Friday. Use pump 8.</p></main>",
        "Notice",
    ),
    "about logins": article(
        "To sign in, enter your password. You must log in to continue. Please log in to view this page.",
        title="How to log in",
    ),
    "a short help page": page(
        '<h1>I forgot my password. How do I create a new one?</h1><p>If you have forgotten your password, click the "Forgot password?" link on the sign in screen. Enter your email address, and we will send you an email that includes a link to reset your password.</p>',
        "Reset",
    ),
    "about cookies": article(
        "Cookies are small files. Sites ask you to accept all cookies, and their partners track you.",
        title="Cookies and consent",
    ),
    "with a banner": article(around=BANNER),
    "about cookies, with a banner": article(
        "Cookies are small files that browsers keep, and consent is needed for advertising.",
        around=BANNER,
    ),
    "a recipe for cookies": page(
        "<h1>Cookies</h1>"
        + "".join(
            f"<p>Step {n}: mix the butter for the cookies with {n} eggs and bake the cookies for ten minutes until golden.</p>"
            for n in range(5)
        )
        + BANNER,
        "Cookies",
    ),
    "short, with a banner": page(
        f"{BANNER}<main><h1>Pump 7</h1><p>Pump 7 is out of order until Friday, because its bearing is worn. Use pump 8 meanwhile, and fill in the form at the gate, says the works manager.</p></main>",
        "Notice",
    ),
    "about JavaScript": article(
        "You need to enable JavaScript to run this app, says React when JavaScript is disabled.",
        title="JavaScript",
    ),
    "a sentence on JavaScript": page(
        "<p>JavaScript was created in 1995 by Brendan Eich in ten days.</p>", "JavaScript"
    ),
    "with comments": page(
        f"<article><h1>Pump 7</h1><p>Pump 7 is out of order until Friday. Use pump 8 meanwhile.</p></article>{DISQUS}",
        "Notice",
    ),
    "with a tag manager": page(f"{MANAGER}<h1>It works!</h1><p>Pump 7 runs.</p>", "Notice"),
    "about robots": article(
        "Cloudflare says: Checking your browser before accessing. Verify you are human. You have been blocked.",
        title="Just a moment: how checks for robots work",
    ),
    "access denied, explained": article(
        "The error means that the file belongs to another user.", title="Access denied"
    ),
    "with a captcha": article(
        around="<div class='g-recaptcha' data-sitekey='x'></div><script src='https://www.google.com/recaptcha/api.js'></script>"
    ),
    "rendered app": page(
        f"<noscript>You need to enable JavaScript to run this app.</noscript><div id='root'>{article()}</div><script src='/a.js'></script>",
        "App",
    ),
    "tiny": page("<p>Hello world.</p>", "Hello"),
    "example.org": page(
        "<div><h1>Example Domain</h1><p>This domain is for use in documentation examples without needing permission. Avoid use in operations.</p><p><a href='https://iana.org/domains/example'>Learn more</a></p></div>",
        "Example Domain",
    ),
    "Japanese": page(
        "<h1>ポンプ</h1><p>水は百度で沸騰します。ポンプは赤です。七号機は金曜日まで停止しています。八号機をお使いください。</p>",
        "お知らせ",
    ),
    "a poem": page(
        "<h1>Just a moment</h1>"
        + "<p>Just a moment, said the pump, and let me think about the water that I lifted in my life, and where it went.</p>"
        * 16,
        "Just a moment",
    ),
    "custom elements": article(
        around="<my-menu></my-menu><div id='app'></div><script src='/a.js'></script>"
    ),
    "privacy policy": page(
        "<h1>Privacy policy</h1>"
        + "".join(
            f"<p>{n}. We process personal data of visitors, such as addresses, for the delivery of pumps and for invoices, and delete them after ten years.</p>"
            for n in range(6)
        )
        + BANNER,
        "Privacy policy",
    ),
}
