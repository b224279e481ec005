// The library reads all text as mrkdwn and undoes its escapes first, so it would show mentions where Slack
// shows text. What is only text is hidden from it in the private use area, and put back where it is drawn.
const PRIVATE = 0xe000;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
const ESCAPED = /&(?:lt|gt|amp);/g;
const HIDDEN = /[\ue000-\ue07f]/g;

/** Gives a block in which nothing is markup but what Slack takes as such. */
export function guarded(part) {
  if (Array.isArray(part)) return part.map(guarded);
  if (part === null || typeof part !== "object" || part.type === "rich_text") return part;
  if (part.type === "mrkdwn") return { ...part, text: withoutEscapes(part.text) };
  if (part.type === "raw_text") return { ...part, text: hidden(part.text) };
  if (part.type === "plain_text") return { ...part, text: plain(part) };
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, guarded(value)]));
}

/** Puts back what was hidden, once it is on the page. */
export function restore(root) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    node.data = node.data.replace(HIDDEN, (sign) => String.fromCharCode(sign.charCodeAt(0) - PRIVATE));
  }
}

/** An escaped `>` still begins a quote; everywhere else an escaped sign is that sign. */
function withoutEscapes(text) {
  return text.replace(ESCAPED, (entity, at) => {
    const quotes = entity === "&gt;" && (at === 0 || text[at - 1] === "\n");
    return quotes ? entity : hidden(ENTITIES[entity]);
  });
}

/** Plain text may hold emoji by name, no more. */
function plain({ text, emoji = true }) {
  const bare = text.replace(ESCAPED, (entity) => ENTITIES[entity]);
  if (!emoji) return hidden(bare);
  return bare.split(/(:[\w+-]+:)/).map((piece, index) => (index % 2 ? piece : hidden(piece))).join("");
}

function hidden(text) {
  return text.replace(/[!-/:-@[-`{-~]/g, (sign) => String.fromCharCode(PRIVATE + sign.charCodeAt(0)));
}
