// For every page: the theme switch, running countdowns, and parts that update themselves.
(() => {
  const root = document.documentElement;
  const dark = () =>
    (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

  document.getElementById("theme").addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    root.dataset.theme = next;
    try {
      localStorage.setItem("theme", next);
    } catch (refused) {
      // Without storage, the theme applies to this page only.
    }
    document.dispatchEvent(new CustomEvent("themed"));
  });

  // <time data-until datetime="..."> counts down in the same words as the server's text.
  const left = (seconds) => {
    const days = Math.floor(seconds / 86400);
    const hours = Math.floor(seconds / 3600) % 24;
    const minutes = Math.floor(seconds / 60) % 60;
    if (days > 1) return `${days} days ${hours} h`;
    if (seconds >= 3600) return `${24 * days + hours} h ${minutes} min`;
    return `${minutes} min ${Math.floor(seconds) % 60} s`;
  };
  const count = () => {
    for (const each of document.querySelectorAll("time[data-until]")) {
      const seconds = (new Date(each.dateTime) - Date.now()) / 1000;
      each.textContent = seconds > 0 ? left(seconds) : "closed";
    }
  };
  if (document.querySelector("time[data-until]")) {
    count();
    setInterval(count, 1000);
  }

  // Updates a node to equal a fresh one; unchanged nodes keep their focus and scroll position.
  const update = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(fresh);
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of [...fresh.attributes])
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    updateChildren(old, fresh);
  };
  const updateChildren = (old, fresh) => {
    const wanted = [...fresh.childNodes];
    const present = [...old.childNodes];
    wanted.forEach((each, index) => (present[index] ? update(present[index], each) : old.append(each)));
    for (const each of present.slice(wanted.length)) each.remove();
  };

  // <div data-live="URL"> shows the newest event of URL, which has the whole new content. When its
  // [data-say] changes, #said reads it to screen readers.
  for (const part of document.querySelectorAll("[data-live]")) {
    const source = new EventSource(part.dataset.live);
    source.addEventListener("part", (event) => {
      const fresh = document.createElement("template");
      fresh.innerHTML = event.data;
      updateChildren(part, fresh.content);
      const say = part.querySelector("[data-say]");
      const said = document.getElementById("said");
      if (say && said && said.textContent !== say.dataset.say) said.textContent = say.dataset.say;
    });
    source.addEventListener("done", () => {
      source.close();
      if ("reload" in part.dataset) location.reload();
    });
    addEventListener("pagehide", () => source.close());
  }
})();
