"""The shapes of a chart as SVG; the page's own style colours them."""

from markupsafe import Markup

CHART = Markup('<svg viewBox="0 0 {0} {1:g}" role="img" aria-label="{2}">{3}</svg>')
TEXT = Markup('<text x="{0:g}" y="{1:g}" class="{2}">{3}</text>')
LINE = Markup('<line x1="{0:g}" y1="{1:g}" x2="{2:g}" y2="{3:g}" class="{4}"/>')
CIRCLE = Markup('<circle cx="{0:g}" cy="{1:g}" r="{2:g}" class="{3}"/>')
RECT = Markup('<rect x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" class="{4}"/>')
