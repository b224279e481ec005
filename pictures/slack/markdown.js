// The Markdown of Slack's `markdown` blocks: GitHub's, without HTML, pictures as links.
import { coloured } from "../code.js";
import MarkdownIt from "markdown-it";

const md = new MarkdownIt({ html: false, linkify: true, breaks: true, highlight: coloured });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
md.renderer.rules.image = (tokens, at) => {
  const { attrs, content } = tokens[at];
  const url = md.utils.escapeHtml(Object.fromEntries(attrs).src);
  return `<a href="${url}">${md.utils.escapeHtml(content) || url}</a>`;
};

md.renderer.rules.mention = (tokens, at, _options, names) => {
  const { user, range } = tokens[at].meta;
  return `<span class="mention">@${md.utils.escapeHtml(user ? (names[user] ?? user) : range)}</span>`;
};
md.inline.ruler.before("autolink", "mention", mention);

/** Gives HTML; `names` says who an id is. */
export function markdown(text, names) {
  return md.render(text, names);
}

/** A mention here notifies as anywhere, so a picture has to show it. */
function mention(state, silent) {
  const found = /^<(?:@(?<user>[A-Z0-9]+)|!(?<range>channel|here|everyone))>/.exec(state.src.slice(state.pos));
  if (!found) return false;
  if (!silent) state.push("mention", "", 0).meta = found.groups;
  state.pos += found[0].length;
  return true;
}
