// Discord's Markdown: less than CommonMark (no tables, images, rules, HTML), and some of its own.
import { coloured } from "../code.js";
import MarkdownIt from "markdown-it";

const TIMES = {
  t: { timeStyle: "short" },
  T: { timeStyle: "medium" },
  d: { dateStyle: "short" },
  D: { dateStyle: "long" },
  f: { dateStyle: "long", timeStyle: "short" },
  F: { dateStyle: "full", timeStyle: "short" },
};
const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const SPECIAL = /^<(?:t:(?<time>-?\d+)(?::(?<format>[tTdDfFR]))?|@!?(?<user>\d+)|@&(?<role>\d+)|#(?<channel>\d+)|(?<command>\/[^:>]+):\d+|a?:(?<emoji>\w+):\d+)>/;

/** Gives a function from Discord Markdown to HTML; `names` maps ids to what a mention shows. */
export function markdown(names) {
  const md = new MarkdownIt({ html: false, linkify: true, breaks: true, highlight: coloured });
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
  md.disable(["table", "hr", "html_block", "lheading", "reference", "code", "image", "html_inline", "entity"]);
  md.validateLink = (url) => /^(https?|discord):/i.test(url);
  only(md, "heading", (line) => /^#{1,3}\s/.test(line));
  only(md, "fence", (line) => line.startsWith("```"));
  only(md, "list", (line) => !line.startsWith("+"));
  md.block.ruler.at("blockquote", quote, { alt: ["paragraph", "list"] });
  md.block.ruler.before("list", "subtext", subtext, { alt: ["paragraph", "blockquote", "list"] });
  md.inline.ruler.before("autolink", "special", special);
  md.inline.ruler.at("text", plain);
  md.inline.ruler.before("emphasis", "spoiler", spoiler);
  md.core.ruler.after("block", "blank", blank);
  md.renderer.rules.strong_open = (tokens, at) => (tokens[at].markup === "__" ? "<u>" : "<strong>");
  md.renderer.rules.strong_close = (tokens, at) => (tokens[at].markup === "__" ? "</u>" : "</strong>");
  md.renderer.rules.special = (tokens, at) => shown(tokens[at].meta, names);
  md.renderer.rules.blank = () => '<div class="blank"></div>';
  return (text) => `<div class="markdown">${md.render(text)}</div>`;
}

/** Lets a block rule see only the lines that Discord gives it. */
function only(md, name, accepts) {
  const rule = md.block.ruler.__rules__.find((each) => each.name === name);
  const { fn, alt } = rule;
  md.block.ruler.at(
    name,
    (state, line, end, silent) => accepts(lineAt(state, line)) && fn(state, line, end, silent),
    { alt },
  );
}

function lineAt(state, line) {
  return state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]);
}

/** `> ` quotes its own line and no more; `>>> ` quotes all that follows. */
function quote(state, start, end, silent) {
  const rest = /^>>> /.test(lineAt(state, start));
  if (!rest && !/^> /.test(lineAt(state, start))) return false;
  if (silent) return true;
  let next = start + 1;
  while (next < end && (rest || /^>( |$)/.test(lineAt(state, next)))) next += 1;
  const lines = state.getLines(start, next, state.blkIndent, false).split("\n");
  const text = rest ? [lines[0].slice(4), ...lines.slice(1)] : lines.map((line) => line.replace(/^> ?/, ""));
  const open = state.push("blockquote_open", "blockquote", 1);
  open.map = [start, next];
  const inner = [];
  state.md.block.parse(text.join("\n"), state.md, state.env, inner);
  state.tokens.push(...inner);
  state.push("blockquote_close", "blockquote", -1);
  state.line = next;
  return true;
}

function subtext(state, start, _end, silent) {
  const line = lineAt(state, start);
  if (!/^-# \S/.test(line)) return false;
  if (silent) return true;
  const open = state.push("subtext_open", "small", 1);
  open.block = true;
  open.map = [start, start + 1];
  const inline = state.push("inline", "", 0);
  Object.assign(inline, { content: line.slice(3).trim(), map: open.map, children: [] });
  state.push("subtext_close", "small", -1).block = true;
  state.line = start + 1;
  return true;
}

/** Discord shows a blank line as one, except below a heading. */
function blank(state) {
  const lines = state.src.split("\n");
  const spaced = [];
  let above = null;
  for (const token of state.tokens) {
    const opens = token.level === 0 && token.map && token.nesting >= 0;
    if (opens && above && above !== "heading_open" && lines[token.map[0] - 1]?.trim() === "") {
      const gap = new state.Token("blank", "", 0);
      gap.block = true;
      spaced.push(gap);
    }
    if (opens) above = token.type;
    spaced.push(token);
  }
  state.tokens = spaced;
}

/** Runs of text end at a bar too, where a spoiler may begin. */
function plain(state, silent) {
  const [text] = /^[^\n!-/:-@[-`{-~]*/.exec(state.src.slice(state.pos, state.posMax));
  if (!text) return false;
  if (!silent) state.pending += text;
  state.pos += text.length;
  return true;
}

function special(state, silent) {
  const found = SPECIAL.exec(state.src.slice(state.pos));
  if (!found) return false;
  if (!silent) state.push("special", "", 0).meta = found.groups;
  state.pos += found[0].length;
  return true;
}

function spoiler(state, silent) {
  if (!state.src.startsWith("||", state.pos)) return false;
  const end = state.src.indexOf("||", state.pos + 2);
  if (end <= state.pos + 2) return false;
  if (!silent) {
    const { posMax } = state;
    state.push("spoiler_open", "span", 1).attrSet("class", "spoiler");
    Object.assign(state, { pos: state.pos + 2, posMax: end });
    state.md.inline.tokenize(state);
    state.push("spoiler_close", "span", -1);
    state.posMax = posMax;
  }
  state.pos = end + 2;
  return true;
}

function shown(found, names) {
  const mention = (sign, id, unknown) => `<span class="mention">${sign}${escaped(names.get(id) ?? unknown)}</span>`;
  if (found.time) return `<span class="time">${moment(Number(found.time), found.format ?? "f")}</span>`;
  if (found.user) return mention("@", found.user, "unknown-user");
  if (found.role) return mention("@", found.role, "unknown-role");
  if (found.channel) return mention("# ", found.channel, "unknown");
  if (found.command) return `<span class="mention">${escaped(found.command)}</span>`;
  return `:${found.emoji}:`;
}

function moment(seconds, format) {
  if (format !== "R") return new Date(seconds * 1000).toLocaleString(undefined, TIMES[format]);
  const away = seconds - Date.now() / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(away) >= size) ?? UNITS.at(-1);
  return new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(Math.round(away / size), unit);
}

export function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
