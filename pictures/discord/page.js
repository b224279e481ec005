// Shows messages as Discord's API gives them. What it doesn't know it refuses, so no picture leaves anything out.
import { defineCustomElements } from "@derockdev/discord-components-core/loader";
import { avatar } from "../avatars.js";
import { markdown } from "./markdown.js";
import "./style.css";

const EPHEMERAL = 1 << 6;
// A message, a reply, what a command answered, what a menu's command answered.
const KINDS = [0, 19, 20, 23];
const COMMAND = 2;
const GROUPED_WITHIN = 7 * 60 * 1000;
const STYLES = { 1: "primary", 2: "secondary", 3: "success", 4: "destructive", 5: "secondary" };
const HASH = "M10 4 8 20M16 4l-2 16M4.5 9h16M3.5 15h16";
const THREAD = "M9 3 7.4 11M15 3l-1.2 6M4 7h16M3 13h6M12 13h9v6h-4l-3 3v-3h-2z";

window.ready = show();

async function show() {
  const list = element("discord-messages", {}, window.messages.map(message));
  const header = window.title ? [bar(window.title)] : [];
  document.querySelector("main").append(...header, list);
  await defineCustomElements();
  await hydrated();
  for (const tag of list.querySelectorAll(".discord-application-tag")) tag.textContent = "App";
  window.messages.forEach((each, index) => {
    const when = list.children[index].querySelector(".discord-message-timestamp");
    when.textContent = said(new Date(each.timestamp));
  });
}

async function hydrated() {
  const open = () => [...document.querySelectorAll("main *")].some((each) => each.localName.includes("-") && !each.matches(".hydrated"));
  while (open()) await new Promise(requestAnimationFrame);
}

function bar(title) {
  const channel = title.startsWith("#");
  const icon = `<svg viewBox="0 0 24 24"><path d="${channel ? HASH : THREAD}"/></svg>`;
  return element("header", {}, [html(icon), channel ? title.slice(1).trim() : title]);
}

function message(each, index, all) {
  if (!KINDS.includes(each.type ?? 0)) throw new Error(`messages of type ${each.type} can't be drawn`);
  const text = markdown(namesIn(each));
  const name = nameOf(each.author);
  const grouped = continues(each, all[index - 1]);
  return element(
    "discord-message",
    {
      author: name,
      avatar: avatar(name, each.author.bot),
      bot: Boolean(each.author.bot),
      edited: Boolean(each.edited_timestamp) && Boolean(each.content),
      ephemeral: Boolean(each.flags & EPHEMERAL),
      highlight: Boolean(each.mentions?.length),
      ...(grouped && { "data-grouped": "" }),
    },
    [
      ...(each.message_reference ? [reply(each)] : command(each)),
      ...(each.content ? [html(text(each.content))] : []),
      ...(each.attachments ?? []).map(file),
      ...(each.embeds ?? []).map((embed) => embedded(embed, text)),
      ...(each.components?.length ? [slot("components", "discord-attachments", each.components.map(row))] : []),
      ...(each.thread ? [thread(each.thread)] : []),
    ],
  );
}

function continues(each, before) {
  if (!before || before.author.id !== each.author.id) return false;
  if (each.interaction_metadata || each.interaction || each.message_reference) return false;
  return Date.parse(each.timestamp) - Date.parse(before.timestamp) < GROUPED_WITHIN && before.flags === each.flags;
}

function reply({ message_reference: { message_id: id }, referenced_message: given }) {
  const to = given ?? window.messages.find((each) => each.id === id);
  if (!to) throw new Error("a reply needs its referenced_message, or the message itself in the list");
  const author = nameOf(to.author);
  const attributes = { author, avatar: avatar(author, to.author.bot), bot: Boolean(to.author.bot) };
  return slot("reply", "discord-reply", [to.content || "Click to see attachment"], attributes);
}

function command({ interaction_metadata: metadata, interaction }) {
  const name = interaction?.name ?? metadata?.name;
  const user = interaction?.user ?? metadata?.user;
  if ((interaction ?? metadata)?.type !== COMMAND) return [];
  if (!name || !user) throw new Error("a command's answer needs the `interaction` with its name and user");
  const author = nameOf(user);
  return [slot("reply", "discord-command", [], { author, avatar: avatar(author, user.bot), command: `/${name}` })];
}

function embedded(embed, text) {
  const { title, url, color, description, fields = [], footer, author, timestamp } = embed;
  const colour = color ? `#${color.toString(16).padStart(6, "0")}` : undefined;
  const tail = [footer?.text, timestamp && said(new Date(timestamp))].filter(Boolean).join(" \u2022 ");
  return slot(
    "embeds",
    "discord-embed",
    [
      ...(description ? [slot("description", "discord-embed-description", [html(text(description))])] : []),
      ...(fields.length ? [slot("fields", "div", fields.map((field) => fieldOf(field, text)), { class: "fields" })] : []),
      ...(tail ? [slot("footer", "discord-embed-footer", [tail])] : []),
    ],
    { "embed-title": title, url, color: colour, "author-name": author?.name },
  );
}

function fieldOf({ name, value, inline }, text) {
  const head = element("div", { class: "name" }, [name]);
  return element("div", { class: inline ? "field inline" : "field" }, [head, html(text(value))]);
}

function row({ type, components }) {
  if (type !== 1) throw new Error(`component type ${type} can't be drawn, only rows of buttons`);
  return element("discord-action-row", {}, components.map(button));
}

function button({ type, style, label, emoji, disabled, url }) {
  if (type !== 2) throw new Error(`component type ${type} can't be drawn, only buttons`);
  const said = [emoji?.name, label].filter(Boolean).join(" ");
  return element("discord-button", { type: STYLES[style], url, disabled: Boolean(disabled) }, [said]);
}

function file({ filename, size }) {
  const name = element("div", { class: "name" }, [filename]);
  const bytes = element("div", { class: "size" }, [size < 1024 ? `${size} bytes` : `${(size / 1024).toFixed(2)} KB`]);
  const icon = html('<svg viewBox="0 0 30 40"><path d="M2 1h18l8 8v30H2z"/><path d="M20 1v8h8M8 18h14M8 24h14M8 30h9"/></svg>');
  return slot("embeds", "div", [icon, element("div", {}, [name, bytes])], { class: "file" });
}

function thread({ name, message_count: count = 0 }) {
  const cta = count ? `${count} Message${count === 1 ? "" : "s"}` : "See Thread";
  // The API doesn't say what the last message was, so its preview is left out.
  return slot("thread", "discord-thread", count ? [] : ["There are no recent messages in this thread."], { name, cta });
}

function namesIn({ mentions = [], mention_channels: channels = [] }) {
  return new Map([...Object.entries(window.names), ...mentions.map((user) => [user.id, nameOf(user)]), ...channels.map(({ id, name }) => [id, name])]);
}

function nameOf(user) {
  return user.global_name ?? user.username;
}

function said(date) {
  const time = date.toLocaleTimeString(undefined, { timeStyle: "short" });
  const days = Math.floor(Date.now() / 86400000) - Math.floor(date.getTime() / 86400000);
  if (days > 1) return `${date.toLocaleDateString()} ${time}`;
  return `${days ? "Yesterday" : "Today"} at ${time}`;
}

function slot(name, tag, children, attributes = {}) {
  return element(tag, { slot: name, ...attributes }, children);
}

function element(tag, attributes, children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function html(source) {
  return document.createRange().createContextualFragment(source).firstElementChild;
}
