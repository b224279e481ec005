// Shows messages as Slack's API gives them. What it doesn't know it refuses, so no picture leaves anything out.
import { createRoot } from "react-dom/client";
import { flushSync } from "react-dom";
import { Message } from "slack-blocks-to-jsx";
import "slack-blocks-to-jsx/dist/style.css";
import { avatar } from "../avatars.js";
import { markdown } from "./markdown.js";
import { guarded, restore } from "./text.js";
import "./style.css";

const DRAWN = new Set(["actions", "context", "divider", "header", "image", "markdown", "rich_text", "section", "table"]);
const GROUPED_WITHIN = 5 * 60;

window.ready = show();

async function show() {
  const unknown = window.messages.flatMap((each) => each.blocks ?? []).find(({ type }) => !DRAWN.has(type));
  if (unknown) throw new Error(`blocks of type ${unknown.type} can't be drawn`);
  flushSync(() => createRoot(document.querySelector("main")).render(<Conversation messages={window.messages} />));
  restore(document.querySelector("main"));
}

function Conversation({ messages }) {
  const shown = new Set(messages.map(({ ts }) => ts));
  const answers = messages.filter(({ ts, thread_ts: root }) => root && root !== ts && shown.has(root));
  return (
    <>
      {window.title && <header>{window.title}</header>}
      {messages.map((each, index) => (
        <Row key={each.ts} message={each} grouped={continues(each, messages[index - 1])}>
          <Replies message={each} below={answers.filter(({ thread_ts: root }) => root === each.ts).length} />
        </Row>
      ))}
    </>
  );
}

function continues(each, before) {
  if (!before || before.user !== each.user || each.is_ephemeral || before.is_ephemeral) return false;
  const divided = before.reply_count && each.thread_ts === before.ts;
  return !divided && Number(each.ts) - Number(before.ts) < GROUPED_WITHIN;
}

function Row({ message, grouped, children }) {
  const name = nameOf(message);
  const isBot = Boolean(message.bot_id);
  return (
    <>
      <article className={[grouped && "grouped", message.is_ephemeral && "ephemeral"].filter(Boolean).join(" ")}>
        {message.is_ephemeral && <p className="private"><Eye /> Only visible to you</p>}
        <img className="avatar" src={avatar(name, isBot)} alt="" />
        <div className="body">
          {!grouped && (
            <p className="by">
              <b>{name}</b>
              {isBot && <span className="app">APP</span>}
              <time>{clock(message.ts)}</time>
            </p>
          )}
          <Said message={message} />
          {message.files?.map((file) => <File key={file.id} file={file} />)}
          {message.reply_count > 0 && !children.props.below && <Bar message={message} name={name} isBot={isBot} />}
        </div>
      </article>
      {children}
    </>
  );
}

/** Where blocks are given, the text is only for notifications. */
function Said({ message: { blocks = [], text, edited } }) {
  if (!blocks.length && !text) return null;
  const given = blocks.length ? blocks : [{ type: "section", text: { type: "mrkdwn", text } }];
  const users = Object.entries(window.names).map(([id, name]) => ({ id, name }));
  return (
    <>
      {given.map((block, index) =>
        // The library indents every line of a Markdown block by one, which changes what it means.
        block.type === "markdown" ? (
          <div key={index} className="markdown" dangerouslySetInnerHTML={{ __html: markdown(block.text, window.names) }} />
        ) : (
          <Message key={index} blocks={[guarded(block)]} data={{ users }} hooks={{ date }} theme="light" withoutWrapper />
        ),
      )}
      {edited && !blocks.length && <span className="edited">(edited)</span>}
    </>
  );
}

/** In the channel: how many replies hide behind the message. */
function Bar({ message, name, isBot }) {
  return (
    <p className="bar">
      <img src={avatar(name, isBot)} alt="" />
      <b>{counted(message.reply_count)}</b>
      {message.latest_reply && <span>Last reply today at {clock(message.latest_reply)}</span>}
    </p>
  );
}

/** In the thread: the line between the message and its replies. */
function Replies({ below }) {
  return below > 0 && <p className="replies"><span>{counted(below)}</span></p>;
}

function File({ file: { title, name, filetype } }) {
  return (
    <div className="file">
      <svg viewBox="0 0 36 36"><rect width="36" height="36" rx="6" /><path d="M12 8h8l5 5v15H12zM20 8v5h5" /></svg>
      <div><b>{title || name}</b><span>{filetype || "file"}</span></div>
    </div>
  );
}

function Eye() {
  return (
    <svg viewBox="0 0 20 20"><path d="M1.5 10S4.5 4.5 10 4.5 18.5 10 18.5 10 15.5 15.5 10 15.5 1.5 10 1.5 10z" /><circle cx="10" cy="10" r="2.5" /></svg>
  );
}

function nameOf({ username, user, bot_profile: profile }) {
  return username ?? window.names[user] ?? profile?.name ?? user;
}

function counted(replies) {
  return `${replies} ${replies === 1 ? "reply" : "replies"}`;
}

function clock(ts) {
  return new Date(Number(ts) * 1000).toLocaleTimeString(undefined, { timeStyle: "short" });
}

function date({ timestamp, format, fallback }) {
  const at = new Date(Number(timestamp) * 1000);
  const days = Math.floor(Date.now() / 86400000) - Math.floor(at.getTime() / 86400000);
  const near = { 0: "today", 1: "yesterday", "-1": "tomorrow" }[days];
  const long = { year: "numeric", month: "long", day: "numeric" };
  const tokens = {
    date_num: at.toLocaleDateString("en-CA"),
    date: at.toLocaleDateString(undefined, long),
    date_short: at.toLocaleDateString(undefined, { ...long, month: "short" }),
    date_long: at.toLocaleDateString(undefined, { ...long, weekday: "long" }),
    time: at.toLocaleTimeString(undefined, { timeStyle: "short" }),
    time_secs: at.toLocaleTimeString(undefined, { timeStyle: "medium" }),
    ago: ago(at),
  };
  const pretty = (name) => near ?? tokens[name];
  let known = true;
  const said = format.replace(/\{(\w+?)(_pretty)?\}/g, (_, name, friendly) => {
    known &&= name in tokens;
    return friendly ? pretty(name) : tokens[name];
  });
  return known ? said : fallback;
}

function ago(at) {
  const seconds = Math.round((Date.now() - at.getTime()) / 1000);
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, size]) => seconds >= size) ?? ["second", 1];
  return new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(-Math.floor(seconds / size), unit);
}
