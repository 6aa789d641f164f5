// Copies links, commands and sources. Where the browser refuses the clipboard, the text is selected.
(() => {
  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };
  const said = Object.assign(document.createElement("p"), { className: "hidden-words", ariaLive: "polite" }); // read by screen readers
  document.getElementById("main").append(said);
  const copy = async (button, text, node) => {
    if (said.textContent) return; // the answer to the last click is still shown
    const contents = [...button.childNodes];
    let words = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {
      select(node());
      if (!document.execCommand("copy")) words = "Selected: copy it with Ctrl+C";
    }
    said.textContent = words;
    button.replaceChildren(words);
    setTimeout(() => {
      button.replaceChildren(...contents);
      said.textContent = "";
    }, 3000);
  };

  // <button data-copy="ID"> copies the text of an element.
  for (const button of document.querySelectorAll("[data-copy]")) {
    const node = document.getElementById(button.dataset.copy);
    button.addEventListener("click", () => copy(button, node.textContent, () => node));
  }

  // <button data-copy-link> copies the page's public address. Where that is refused, the address is shown next to it.
  for (const button of document.querySelectorAll("[data-copy-link]")) {
    const link = document.querySelector("meta[property='og:url']")?.content || location.href.split("#")[0];
    button.addEventListener("click", () =>
      copy(button, link, () => {
        const shown = button.parentElement.querySelector(".link-text") || Object.assign(document.createElement("code"), { className: "link-text", textContent: link });
        button.after(shown);
        return shown;
      }),
    );
  }

  // <code data-command> is a command or a name inside a sentence: a small button after it copies it.
  for (const node of document.querySelectorAll("code[data-command]")) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy-command", title: "Copy" });
    button.setAttribute("aria-label", `Copy ${node.textContent}`);
    button.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5"/></svg>';
    node.after(button);
    button.addEventListener("click", () => copy(button, node.textContent, () => node));
  }

  // Every block of code gets a button at its corner.
  for (const block of document.querySelectorAll("pre.log, .statement pre, .code")) {
    if (block.closest("[data-live]")) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button small copy", textContent: "Copy" });
    const frame = Object.assign(document.createElement("div"), { className: "copyable" });
    block.replaceWith(frame);
    frame.append(block, button);
    const text = block.querySelector("pre") || block;
    button.addEventListener("click", () => copy(button, text.textContent, () => text));
  }
})();
