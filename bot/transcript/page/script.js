"use strict";
// Without this script every member's panel is open, and the tabs are links to them.
for (const group of document.querySelectorAll("[data-tabs]")) {
  const list = group.querySelector(".tabs");
  const tabs = [...list.querySelectorAll("a")];
  const panels = tabs.map((tab) => document.getElementById(tab.hash.slice(1)));

  const select = (chosen) => {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === chosen));
      tab.tabIndex = at === chosen ? 0 : -1;
      // Searching the page finds words in closed panels, too, and opens them.
      if (at === chosen) panels[at].removeAttribute("hidden");
      else panels[at].setAttribute("hidden", "until-found");
      // What is closed is no tab stop.
      panels[at].tabIndex = at === chosen ? 0 : -1;
    });
  };

  list.setAttribute("role", "tablist");
  tabs.forEach((tab, at) => {
    const panel = panels[at];
    tab.parentElement.setAttribute("role", "presentation");
    tab.id = `${panel.id}-tab`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    panel.addEventListener("beforematch", () => select(at));
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      select(at);
    });
  });
  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(document.activeElement);
    const to = {
      ArrowRight: (at + 1) % tabs.length,
      ArrowLeft: (at - 1 + tabs.length) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
      " ": at,
    }[event.key];
    if (to === undefined || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    select(to);
    tabs[to].focus();
  });
  const named = panels.findIndex((panel) => `#${panel.id}` === location.hash);
  select(Math.max(named, 0));
}
