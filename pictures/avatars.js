// Drawn faces: a person's initial, or the council's table.
const COLOURS = ["#5b7c99", "#8a6d9e", "#b0705a", "#4f8a72", "#a3823f", "#7a6ac0"];

const TABLE = `<circle cx="20" cy="20" r="6.5" fill="none" stroke="#fff" stroke-width="2.4"/>
<g fill="#fff"><circle cx="20" cy="8.5" r="3"/><circle cx="31.5" cy="20" r="3"/>
<circle cx="20" cy="31.5" r="3"/><circle cx="8.5" cy="20" r="3"/></g>`;

export function avatar(name, isBot) {
  const code = [...name].reduce((sum, letter) => sum + letter.codePointAt(0), 0);
  const initial = [...name][0]?.toUpperCase() ?? "?";
  const letter = `<text x="20" y="27" font-family="Lato, Noto Sans, sans-serif" font-size="20" font-weight="700"
    fill="#fff" text-anchor="middle">${initial.replace(/[<&]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</text>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><rect width="40" height="40"
    fill="${isBot ? "#3b3f8f" : COLOURS[code % COLOURS.length]}"/>${isBot ? TABLE : letter}</svg>`;
  return `data:image/svg+xml;utf8,${encodeURIComponent(svg)}`;
}
