// For every page: the theme switch, running countdowns, moments in the reader's zone, and parts that update themselves, with the tab's title and notifications.
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
      each.textContent = seconds > 0 ? `${left(seconds)} left` : "closed";
      if (seconds <= 0) for (const offered of document.querySelectorAll("[data-while-open]")) offered.hidden = true;
    }
  };
  if (document.querySelector("time[data-until]")) {
    count();
    setInterval(count, 1000);
  }

  // A moment, such as 2026-11-26 12:48 UTC, is shown in the reader's zone, with UTC on hover: in <time datetime="...">,
  // and in all other text of ours. What people wrote stays as it is.
  const MOMENT = /\d{4}-\d\d-\d\d \d\d:\d\d UTC/;
  const WRITTEN = ".statement, .code, .difference, pre, code, textarea, time, script";
  const local = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "short" });
  const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
  const here = (at) => `${local.format(at)} ${zone.formatToParts(at).find((found) => found.type === "timeZoneName").value}`;
  const utc = (at) => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const timed = (said, at = new Date(said.replace(" ", "T").replace(" UTC", "Z"))) =>
    Object.assign(document.createElement("time"), { dateTime: at.toISOString(), title: utc(at), textContent: here(at) });
  const localize = (part) => {
    for (const each of part.querySelectorAll("time[datetime]:not([title])")) {
      const said = each.textContent.trim();
      if (!/^\d{4}-\d\d-\d\d( \d\d:\d\d UTC)?$/.test(said)) continue;
      const at = new Date(each.dateTime);
      each.title = utc(at);
      each.textContent = said.endsWith("UTC") ? here(at) : local.format(at).slice(0, 10);
    }
    const walk = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walk.nextNode()) if (MOMENT.test(walk.currentNode.data) && !walk.currentNode.parentElement?.closest(WRITTEN)) texts.push(walk.currentNode);
    for (const text of texts) {
      const option = text.parentElement?.closest("option"); // has no elements
      if (option) option.title = text.data;
      const pieces = text.data.split(new RegExp(`(${MOMENT.source})`)).map((each) => (MOMENT.test(each) ? timed(each) : each));
      text.replaceWith(...(option ? pieces.map((each) => each.textContent ?? each) : pieces));
    }
  };
  localize(document.body);
  document.addEventListener("timed", (event) => localize(event.target));

  // Every form gets the stamp of the present session before it is sent. If the session has ended, the form
  // is not sent and keeps what was typed; a message in it has a link to sign in, in another tab.
  const renew = async (form) => {
    const answer = await fetch("/sign-in/stamp", { headers: { Accept: "application/json" } }).catch(() => null);
    const known = form.querySelector("[data-signed-out]");
    if (answer?.status === 401) {
      if (known) return false;
      const notice = Object.assign(document.createElement("p"), { className: "notice warn", role: "alert" });
      notice.dataset.signedOut = "";
      const link = Object.assign(document.createElement("a"), { href: "/sign-in?next=/me", target: "_blank", textContent: "Sign in in another tab" });
      notice.append("You are signed out. Nothing was sent, and what you entered is still here. ", link, ", then send it again.");
      form.prepend(notice);
      notice.scrollIntoView({ block: "center" });
      return false;
    }
    if (answer?.ok) form.elements.stamp.value = (await answer.json()).stamp;
    known?.remove();
    return true;
  };
  document.addEventListener("signed-out", (event) => renew(event.target));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) for (const each of document.querySelectorAll("[data-signed-out]")) renew(each.closest("form"));
  });
  // A form that is on its way is not sent again: a double click would submit a kernel twice.
  const SENDING_MS = 5000; // then it can be sent again, because the person may have stopped the page
  const sending = new Set();
  let renewed = null;
  const send = async (event) => {
    const form = event.target;
    if (!form.elements.stamp || renewed === form) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (sending.has(form)) return;
    sending.add(form);
    const isRenewed = await renew(form);
    sending.delete(form);
    if (!isRenewed) return;
    renewed = form;
    form.requestSubmit(event.submitter);
    renewed = null;
  };
  addEventListener("submit", send, true);
  addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    sending.add(event.target);
    setTimeout(() => sending.delete(event.target), SENDING_MS);
  });
  addEventListener("pageshow", () => sending.clear());

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
    for (const { name } of [...old.attributes])
      if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name); // what was opened stays open
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

  // <button data-notify> asks to be told of the end, once, by a notification of the browser.
  const notify = document.querySelector("[data-notify]");
  let told = false;
  if (notify && (!("Notification" in window) || Notification.permission === "denied")) {
    notify.style.visibility = "hidden"; // its space stays, so that nothing on the page moves
  } else if (notify) {
    notify.addEventListener("click", async () => {
      told = (await Notification.requestPermission()) === "granted";
      notify.textContent = told ? "You will be notified" : "This browser refuses notifications";
      notify.disabled = true;
    });
  }
  const tell = () => {
    if (notify) notify.hidden = true;
    if (!told || !document.hidden) return;
    try {
      new Notification(document.title).addEventListener("click", () => window.focus());
    } catch (refused) {
      // Phones notify only from service workers; the tab's title still tells the end.
    }
  };

  // <div data-live="URL"> shows the newest event of URL, which has the whole new content. When its
  // [data-say] changes, #said reads it to screen readers; its [data-title] becomes the tab's title.
  // A browser keeps few connections to a server, so a hidden tab has none open: it looks now and then.
  const REST_MS = 10000;
  const follow = (part) => {
    let source = null;
    let timer = 0;
    let ended = false;
    const show = (text) => {
      const fresh = document.createElement("template");
      fresh.innerHTML = text;
      localize(fresh.content);
      const before = part.innerHTML;
      updateChildren(part, fresh.content);
      if (part.innerHTML !== before) part.dispatchEvent(new CustomEvent("updated", { bubbles: true }));
      const say = part.querySelector("[data-say]");
      const said = document.getElementById("said");
      if (say && said && said.textContent !== say.dataset.say) said.textContent = say.dataset.say;
      const title = part.querySelector("[data-title]");
      if (title) document.title = title.dataset.title;
    };
    const close = () => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const rest = () => {
      if (ended || !document.hidden) return;
      close();
      timer = setTimeout(open, REST_MS);
    };
    const open = () => {
      if (ended || source) return;
      clearTimeout(timer);
      source = new EventSource(part.dataset.live);
      source.addEventListener("part", (event) => {
        show(event.data);
        if (document.hidden) timer = setTimeout(rest, 1000); // the end may follow at once
      });
      source.addEventListener("error", rest);
      source.addEventListener("done", () => {
        ended = true;
        close();
        tell();
        if (!("reload" in part.dataset)) return;
        if (!document.querySelector("main details[open] form")) return location.reload();
        const again = Object.assign(document.createElement("a"), { href: location.pathname, textContent: "Reload the page" });
        part.append(again, " for the whole result; what you have not sent yet is lost then.");
      });
    };
    document.addEventListener("visibilitychange", () => (document.hidden ? rest() : open()));
    addEventListener("pagehide", close);
    addEventListener("pageshow", open);
    open();
  };
  document.querySelectorAll("[data-live]").forEach(follow);
})();
