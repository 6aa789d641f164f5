// Forms with a dropped, chosen or pasted file, which the server previews before it is submitted.
(() => {
  const size = (bytes) => (bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${+(bytes / 1e6).toFixed(1)} MB`);

  // <div data-drop> around a file input: the input gets a file that is dropped anywhere on the page.
  for (const zone of document.querySelectorAll("[data-drop]")) {
    const input = zone.querySelector("input[type=file]");
    const label = zone.querySelector("[data-dropped]") || zone.appendChild(Object.assign(document.createElement("p"), { className: "dropped", role: "status" }));
    const kept = label.textContent; // the file of the form's last try, which the server gave back
    const show = () => {
      const file = input.files[0];
      const most = Number(zone.dataset.most || 0);
      zone.classList.toggle("has-file", Boolean(file));
      label.textContent = file ? `${file.name}, ${size(file.size)}` : kept;
      input.setCustomValidity(file && most && file.size > most ? `The file is too large: at most ${size(most)} are allowed.` : "");
    };
    input.addEventListener("change", () => {
      show();
      if (input.validity.customError) input.reportValidity();
    });
    let inside = 0;
    const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
    addEventListener("dragenter", (event) => {
      if (!hasFiles(event)) return;
      inside += 1;
      zone.classList.add("over");
    });
    addEventListener("dragleave", (event) => {
      if (!hasFiles(event)) return;
      inside = Math.max(0, inside - 1);
      if (!inside) zone.classList.remove("over");
    });
    addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      inside = 0;
      zone.classList.remove("over");
      const transfer = new DataTransfer();
      transfer.items.add(event.dataTransfer.files[0]);
      input.files = transfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
    show();
  }

  // Text pasted outside a field becomes the source; a pasted file becomes the file.
  const source = document.querySelector("textarea[name=source]");
  if (source) {
    addEventListener("paste", (event) => {
      if (event.target.closest("input, textarea, select")) return;
      const text = event.clipboardData.getData("text/plain");
      const input = source.form.elements.file;
      if (event.clipboardData.files.length) {
        input.files = event.clipboardData.files;
        input.dispatchEvent(new Event("change", { bubbles: true }));
      } else if (text) {
        source.closest("details").open = true;
        source.value = text;
        source.dispatchEvent(new Event("change", { bubbles: true }));
        source.focus();
      } else {
        return;
      }
      event.preventDefault();
    });
    // A pasted source replaces a chosen file, and a chosen file replaces a pasted source.
    source.addEventListener("input", () => {
      const input = source.form.elements.file;
      if (source.value && input.files.length) {
        input.value = "";
        input.dispatchEvent(new Event("change"));
      }
    });
    source.form.elements.file.addEventListener("change", (event) => {
      if (event.target.files.length) source.value = source.form.elements.kept_name.value = "";
    });
  }

  // <form data-look="URL" data-into="ID"> shows the contents of its file and the remaining choices.
  for (const form of document.querySelectorAll("form[data-look]")) {
    const into = document.getElementById(form.dataset.into);
    let pending = null;
    const preview = async (changed) => {
      const data = new FormData(form);
      const file = form.querySelector("input[type=file]");
      if (changed === file || changed.name === "source") {
        // Choices for the previous file are used where the new file names none.
        for (const name of into.contains(form.elements.board) ? ["board", "gpu"] : ["gpu"]) {
          for (const value of data.getAll(name)) data.append(`earlier_${name}`, value);
          data.delete(name);
        }
      }
      if (changed.name === "board") data.delete("gpu");
      if (!file.validity.customError && (file.files.length || !file.required || !changed.matches("[type=file]"))) {
        pending?.abort();
        pending = new AbortController();
        into.setAttribute("aria-busy", "true");
        try {
          const answer = await fetch(form.dataset.look, { method: "POST", body: data, signal: pending.signal, headers: { Accept: "text/html" } });
          const text = await answer.text();
          const focused = into.contains(document.activeElement) ? document.activeElement.id : "";
          if (answer.ok) {
            into.innerHTML = text;
            into.dispatchEvent(new Event("timed", { bubbles: true }));
          } else if (answer.status === 401) form.dispatchEvent(new Event("signed-out", { bubbles: true }));
          else if (answer.status === 403) location.reload();
          else into.replaceChildren(Object.assign(document.createElement("p"), { className: "notice bad", textContent: "The preview failed; try again." }));
          const named = into.querySelector("[data-name]");
          if (named && form.elements.name && !form.elements.name.value) form.elements.name.value = named.dataset.name;
          if (focused) document.getElementById(focused)?.focus();
          into.removeAttribute("aria-busy");
        } catch (error) {
          if (error.name !== "AbortError") into.removeAttribute("aria-busy");
        }
      }
    };
    if (form.elements.kept_data && !into.textContent.trim()) preview(form.querySelector("input[type=file]"));
    // A pasted source is looked at before the field is left. Otherwise the choices would change, and the
    // button move, during the click on it.
    let soon = 0;
    form.elements.source?.addEventListener("input", (event) => {
      clearTimeout(soon);
      soon = setTimeout(() => preview(event.target), 300);
    });
    form.addEventListener("change", (event) => {
      clearTimeout(soon);
      const changed = event.target;
      const regrades = changed.matches("select[name=grader]") && form.querySelector("input[type=file]:valid") !== null;
      if (regrades || changed.matches("input[type=file], textarea[name=source], select[name=board]")) preview(changed);
    });
    form.addEventListener("submit", () => {
      const button = form.querySelector("[data-send]");
      button.dataset.words = button.textContent;
      button.textContent = button.dataset.send;
      form.setAttribute("aria-busy", "true");
      setTimeout(() => (button.disabled = true));
    });
    addEventListener("pageshow", () => {
      const button = form.querySelector("[data-send]");
      button.disabled = false;
      button.textContent = button.dataset.words || button.textContent;
      form.removeAttribute("aria-busy");
    });
  }

  // A pasted source stays in this browser until it is sent, or a file replaces it.
  if (source) {
    const key = `draft:${location.pathname}${location.search}`;
    const stored = (use) => {
      try {
        return use(localStorage);
      } catch {
        return null; // the browser keeps nothing
      }
    };
    const save = () => stored((it) => (source.value ? it.setItem(key, source.value) : it.removeItem(key)));
    const draft = stored((it) => it.getItem(key));
    if (draft && !source.value && !source.form.elements.kept_name.value) {
      source.value = draft;
      source.closest("details").open = true;
      source.dispatchEvent(new Event("change", { bubbles: true }));
    }
    for (const field of [source, source.form.elements.file]) {
      for (const name of ["input", "change"]) field.addEventListener(name, save);
    }
    source.form.addEventListener("submit", () => stored((it) => it.removeItem(key)));
  }
})();
