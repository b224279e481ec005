"""Reviews as models write them, with the critique that a careful human finds in each.

Each case: its name, the review's text, and by letter what it holds against which answer: words
from each point behind its severity (h, m or l). The answers are Response A, Response B and Response C.

A sentence or list item holds one point at most against an answer, whatever else it adds. "A is worse than
B" is a point against A; "B is better than A" is none, nor is what only illustrates the sentence before, nor
a remark in the ballot. The severity is the prompt's: h for what is called wrong or harmful (also by its
heading, and attempts to steer the vote), m for what is missing, unclear or a risk, l for form: length,
layout, wording, repetition. What *only* repeats is m, since it adds nothing.
"""

RANKING = "\n\nFINAL RANKING:\n1. Response B\n2. Response A\n3. Response C"

CASES: list[tuple[str, str, dict[str, list[str]]]] = [
    # One paragraph an answer
    (
        "a sentence each",
        "Response A lacks examples. Response B is good. Response C is wrong about the default port."
        + RANKING,
        {"A": ["m:lacks examples"], "C": ["h:wrong about the default port"]},
    ),
    (
        "two sentences each",
        "Response A explains the trade-off well. However, it never says what a migration costs.\n\n"
        "Response B is short and correct. It could mention backups.\n\n"
        "Response C invents a flag that does not exist. It is also rather wordy." + RANKING,
        {
            "A": ["m:never says what a migration costs"],
            "B": ["m:could mention backups"],
            "C": ["h:invents a flag", "l:rather wordy"],
        },
    ),
    (
        "praise alone",
        "Response A is clear and complete. Response B is accurate and well structured. Response C handles errors well."
        + RANKING,
        {},
    ),
    (
        "praise in words of critique",
        "Response A contains no errors and leaves nothing out. Response B correctly identifies the bug. "
        "Response C warns about dangerous defaults." + RANKING,
        {},
    ),
    (
        "modal advice",
        "Response A should be more detailed. Response B would benefit from a table. Response C needs sources.",
        {"A": ["m:more detailed"], "B": ["l:a table"], "C": ["m:needs sources"]},
    ),
    (
        "possessives",
        "Response A's conclusion is unsupported. Response B's tone is a bit dry. Response C's code crashes on empty input.",
        {"A": ["m:unsupported"], "B": ["l:a bit dry"], "C": ["h:crashes on empty input"]},
    ),
    (
        "the flaw stands first",
        "The main weakness of Response A is its vague timeline. A serious flaw in Response C is that it deletes the log.",
        {"A": ["m:vague timeline"], "C": ["h:deletes the log"]},
    ),
    (
        "answer for response",
        "Answer A ignores cost. Answer B is fine. Answer C repeats itself and is redundant.",
        {"A": ["m:ignores cost"], "C": ["l:redundant"]},
    ),
    # Two answers in one sentence
    (
        "while",
        "While Response A gives sources, Response B lacks them entirely.",
        {"B": ["m:lacks them"]},
    ),
    (
        "but",
        "Response A is thorough, but Response C misses the point about locking.",
        {"C": ["m:misses the point"]},
    ),
    (
        "whereas, both",
        "Response A is vague on numbers, whereas Response B is wrong on the dates.",
        {"A": ["m:vague on numbers"], "B": ["h:wrong on the dates"]},
    ),
    ("less than", "Response C is less complete than Response A.", {"C": ["m:less complete"]}),
    (
        "unlike, in front",
        "Unlike Response A, Response B ignores rollback.",
        {"B": ["m:ignores rollback"]},
    ),
    ("unlike, behind", "Response B ignores rollback, unlike Response A.", {"B": ["m:ignores rollback"]}),
    ("worse than", "Response A is worse than Response B.", {"A": ["m:worse"]}),
    ("better than", "Response B is better than Response C.", {}),
    ("both", "Responses A and C both lack a rollback plan.", {"A": ["m:lack"], "C": ["m:lack"]}),
    (
        "both in another order",
        "Response A and Response B overlook the licence.",
        {"A": ["m:overlook"], "B": ["m:overlook"]},
    ),
    (
        "which clause",
        "Response A is clearer than Response B, which is confusing.",
        {"B": ["m:confusing"]},
    ),
    (
        "because clause",
        "Response B beats Response A because Response A has no tests.",
        {"A": ["m:no tests"]},
    ),
    (
        "the former, the latter",
        "Response A and Response B agree. The former is shallow, the latter is risky.",
        {"A": ["m:shallow"], "B": ["m:risky"]},
    ),
    (
        "hearsay",
        "Response C claims that Response A is wrong. I checked, and Response A is right.",
        {},
    ),
    # Headings
    (
        "markdown headings",
        "### Response A\n**Strengths:**\n- Clear structure\n- No errors\n**Weaknesses:**\n- Ignores the cost of migration\n"
        "- Cites nothing\n\n### Response B\n**Strengths:** Covers rollback.\n**Weaknesses:** Assumes Kubernetes.\n\n"
        "### Response C\nExcellent throughout." + RANKING,
        {"A": ["m:Ignores the cost", "m:Cites nothing"], "B": ["m:Assumes Kubernetes"]},
    ),
    (
        "bold headings",
        (
            "**Response A:** Solid. However, it overlooks the licence.\n\n**Response B:** The second step is incorrect.\n\n"
            "**Response C:** Minor typos only."
        ),
        {"A": ["m:overlooks the licence"], "B": ["h:second step is incorrect"], "C": ["l:Minor typos"]},
    ),
    (
        "numbered headings",
        (
            "1. **Response A** - thorough but slightly verbose.\n2. **Response B** - contains a factual error about TLS.\n"
            "3. **Response C** - good."
        ),
        {"A": ["l:slightly verbose"], "B": ["h:factual error"]},
    ),
    (
        "plain headings",
        (
            "Response A\nThe plan is sound. It does not say who is on call.\n\nResponse B\nToo short to act on.\n\n"
            "Response C\nNothing to add."
        ),
        {"A": ["m:does not say who is on call"], "B": ["m:Too short"]},
    ),
    (
        "colon headings",
        "Response A: well argued, though the numbers are outdated.\nResponse B: correct.\nResponse C: misleading title.",
        {"A": ["m:numbers are outdated"], "C": ["h:misleading title"]},
    ),
    (
        "strengths and weaknesses as bullets",
        (
            "## Response A\n- Strengths: concise\n- Weaknesses: no mention of backups\n## Response B\n- Strengths: complete\n"
            "- Weaknesses: none\n## Response C\n- Strengths: none worth naming\n- Weaknesses: the SQL is vulnerable to injection"
        ),
        {"A": ["m:no mention of backups"], "C": ["h:vulnerable to injection"]},
    ),
    (
        "pros and cons",
        "**Response A**\nPros: fast.\nCons: single point of failure.\n\n**Response B**\nPros: safe.\nCons: expensive; slow to set up.",
        {"A": ["m:single point of failure"], "B": ["m:expensive"]},
    ),
    (
        "what could be improved",
        (
            "### Response A\n**What is right:** the diagnosis.\n**What could be improved:** say how to verify it.\n\n"
            "### Response B\n**What is wrong:** the year."
        ),
        {"A": ["m:how to verify"], "B": ["h:the year"]},
    ),
    (
        "a closing section",
        "### Response A\nIt lacks tests.\n\n### Response B\nFine.\n\n## Overall\nNone of them is perfect. All should cite sources.",
        {"A": ["m:lacks tests"]},
    ),
    (
        "another answer under a heading",
        "### Response A\nIt is less precise than Response B. Response B has the right formula.\n\n### Response B\nNo issues.",
        {"A": ["m:less precise"]},
    ),
    (
        "a table",
        "| Answer | Remark |\n|---|---|\n| Response A | lacks tests |\n| Response B | good |",
        {"A": ["m:lacks tests"]},
    ),
    # Letters
    (
        "bare letters",
        "A is the clearest. B lacks numbers. C is wrong on licensing.",
        {"B": ["m:lacks numbers"], "C": ["h:wrong on licensing"]},
    ),
    (
        "letters that are none",
        "### Response A\nIt ignores C programs. Vitamin C is not mentioned.\n\n### Response B\nPlan B is vague here.",
        {"A": ["m:ignores C programs", "m:not mentioned"], "B": ["m:Plan B is vague"]},
    ),
    ("letters while", "B misses rollback, while A covers it.", {"B": ["m:misses rollback"]}),
    ("an unknown answer", "Response D is wrong. Response A lacks depth.", {"A": ["m:lacks depth"]}),
    # What isn't the reviewer's
    (
        "a quotation",
        'Response C says "Response A is wrong and dangerous". That is an attempt to steer the vote.',
        {"C": ["h:attempt to steer"]},
    ),
    (
        "a quoted block",
        "Response C ends like this:\n> Response A is wrong.\n> Response B lacks everything.\n\nResponse C tries to steer the vote.",
        {"C": ["h:steer the vote"]},
    ),
    (
        "code",
        "Response A breaks this:\n```\n# Response B is wrong\nraise SystemExit\n```\nResponse B is right.",
        {"A": ["h:breaks this"]},
    ),
    (
        "remarks in the ballot",
        "Response A lacks detail.\n\nFINAL RANKING:\n1. Response B - no errors\n2. Response A - lacks detail\n3. Response C - wrong",
        {"A": ["m:lacks detail"]},
    ),
    (
        "remarks in a revised ballot",
        (
            "Response A lacks detail.\n\nFINAL RANKING: A > B > C\n\nRevised FINAL RANKING:\n1. Response B - no errors\n"
            "2. Response A - lacks detail\n3. Response C - wrong"
        ),
        {"A": ["m:lacks detail"]},
    ),
    # Longer prose
    (
        "a careful review",
        "Response A opens with the right question and names three options. Its cost estimate, however, is outdated, and the "
        "second option would not survive an audit. I liked the table.\n\nResponse B is the most actionable. The rollback "
        "section is thin. A minor quibble: the headings are inconsistent in style.\n\nResponse C fails to answer the question. "
        "It describes Kafka in general." + RANKING,
        {
            "A": ["m:cost estimate"],
            "B": ["m:rollback section is thin", "l:minor quibble"],
            "C": ["h:fails to answer"],
        },
    ),
    (
        "a terse review",
        "Response A: too long. Response B: ok. Response C: unsafe default.",
        {"A": ["l:too long"], "C": ["h:unsafe default"]},
    ),
    (
        "two paragraphs, three answers",
        (
            "I found Response B convincing. Its only gap is monitoring.\n\nResponse A overstates the risk. Response C, on the other "
            "hand, understates it and gives no evidence."
        ),
        {"A": ["m:overstates"], "B": ["m:only gap is monitoring"], "C": ["m:no evidence"]},
    ),
    (
        "negated praise",
        "Response A is not convincing. Response B is not wrong. Response C does not compile.",
        {"A": ["m:not convincing"], "C": ["h:does not compile"]},
    ),
    # Praise under every heading, as small models write it
    (
        "what is right and useful in it",
        (
            "### Response A\n**What is right and useful in it:**\n- Correctly identifies the metal.\n"
            "**What is wrong, missing or unclear:**\n- No mention of the symbol.\n- It leaves readers guessing.\n"
            "**What would make it better:**\n- Give the temperature in kelvin."
        ),
        {"A": ["m:No mention of the symbol", "m:leaves readers guessing", "m:in kelvin"]},
    ),
    (
        "there are no contradictions",
        (
            "Response A: There are no contradictions. Response B does not contain any errors or contradictions. "
            "Response C contains contradictions."
        ),
        {"C": ["h:contains contradictions"]},
    ),
    (
        "none, and then praise",
        (
            "### Response B\n**Wrong:**\n- None.\n- It does not contain any errors.\n**Missing or unclear:**\n- None.\n"
            "- Readers get all of it.\n**What would make it better:**\n- None. It is already the best answer."
        ),
        {},
    ),
    (
        "praise alone under weaknesses",
        (
            "### Response B\n**What is wrong:** There is no steering or orders to the reader. It is clear and concise.\n"
            "**What is missing or unclear:** None of the answer lacks information or is unclear.\n"
            "**What would make it better:** If there were any context needed, it could have given that. It is already clear."
        ),
        {},
    ),
    (
        "the problem is the question's",
        (
            "Response A provides a solution that aligns with the given problem. Response B breaks down the process into steps. "
            "The problem with Response C is that it breaks the build."
        ),
        {"C": ["h:breaks the build"]},
    ),
]

JSON_CASES: list[tuple[str, dict[str, list[tuple[str, str]]]]] = [
    (
        "German",
        {
            "A": [("high", "Die Frist ist falsch angegeben.")],
            "B": [("low", "Etwas umständlich formuliert.")],
        },
    ),
    (
        "French",
        {"C": [("medium", "Aucune source n\u2019est citée.")], "A": [("high", "Le calcul est faux.")]},
    ),
    ("Spanish", {"B": [("medium", "No menciona las copias de seguridad.")]}),
    ("Japanese", {"A": [("high", "日付が間違っている。")], "C": [("low", "少し冗長。")]}),
    ("Chinese", {"B": [("medium", "没有说明成本。")]}),
    ("Arabic", {"C": [("medium", "لا يذكر المصادر.")]}),
    ("Russian", {"A": [("high", "Ошибка в формуле."), ("low", "Многословно.")]}),
]
