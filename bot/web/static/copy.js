// Copies links, commands and sources. Where the browser refuses the clipboard, the text is selected.
(() => {
  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };
  const copy = async (button, text, node) => {
    let words = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {
      select(node());
      if (!document.execCommand("copy")) words = "Selected: copy it with Ctrl+C";
    }
    button.dataset.words ||= button.textContent;
    button.textContent = words;
    setTimeout(() => (button.textContent = button.dataset.words), 3000);
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

  // Every block of code gets a button at its corner.
  for (const block of document.querySelectorAll("pre.log, .code")) {
    if (block.closest("[data-live]")) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button small copy", textContent: "Copy" });
    const frame = Object.assign(document.createElement("div"), { className: "copyable" });
    block.replaceWith(frame);
    frame.append(block, button);
    const text = block.querySelector("pre") || block;
    button.addEventListener("click", () => copy(button, text.textContent, () => text));
  }
})();
