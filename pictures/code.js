// Colours for code, as both platforms give it.
import hljs from "highlight.js/lib/common";

/** Gives highlighted HTML, or nothing for a language it doesn't know: the caller then escapes the code. */
export function coloured(code, language) {
  return hljs.getLanguage(language) ? hljs.highlight(code, { language, ignoreIllegals: true }).value : "";
}
