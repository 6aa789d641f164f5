// The editor of "Fix and resubmit": CodeMirror over the form's own textarea, which works without it.
// It is in a shadow root, so that its styles are constructed style sheets, which the page's policy allows.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, StateField } from "@codemirror/state";
import { Decoration, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const look = EditorView.theme({
  "&": { backgroundColor: "var(--sheet)", color: "var(--ink)", fontSize: ".875rem", height: "min(65vh, 44rem)" },
  "&.cm-focused": { outline: "none" }, // the frame around it has the outline, which no gutter covers
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sheet)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--sunk) 60%, transparent)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground, ::selection": { backgroundColor: "var(--accent-wash) !important" },
  ".cm-failed": { backgroundColor: "var(--bad-wash)", boxShadow: "inset 3px 0 var(--bad)" },
  ".cm-changedLine": { backgroundColor: "var(--good-wash) !important" },
  ".cm-changedText": { background: "none !important", textDecoration: "underline" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-wash) !important" },
  ".cm-deletedText": { background: "none !important" },
  ".cm-panels": { backgroundColor: "var(--sunk)", color: "var(--ink)" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-wash)" },
});
const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "light-dark(#8a2a6b, #f09ad0)" },
  { tag: tags.string, color: "light-dark(#1c6b34, #8fd6a3)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.typeName], color: "light-dark(#1f5aa6, #8ec1ff)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.meta, tags.processingInstruction], color: "light-dark(#7a5200, #f0c46b)" },
]);

const place = document.getElementById("editor");
const area = document.getElementById("source");
const form = area.form;
const button = form.querySelector("[data-send]");
const said = document.getElementById("edited");
const key = `draft:${location.pathname}`;
const stored = (change) => {
  try {
    return change(localStorage);
  } catch (refused) {
    return null; // without storage there are no drafts
  }
};

const before = place.dataset.before;
const draft = stored((storage) => storage.getItem(key));
const start = draft ?? area.value;
const changes = new Compartment();
const failing = StateField.define({
  create: (state) => {
    const line = Number(place.dataset.line);
    if (draft !== null || !(line >= 1 && line <= state.doc.lines)) return Decoration.none;
    return Decoration.set([Decoration.line({ class: "cm-failed" }).range(state.doc.line(line).from)]);
  },
  update: (marks, transaction) => marks.map(transaction.changes),
  provide: (field) => EditorView.decorations.from(field),
});

let reviewed = false;
const words = button.textContent;
const review = (shown) => {
  reviewed = shown;
  const merge = shown ? unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 8 } }) : [];
  view.dispatch({ effects: changes.reconfigure(merge) });
  button.textContent = shown ? "Send" : words;
  said.textContent = !shown ? "" : view.state.doc.toString() === before ? "Nothing has changed since the last try. Press again to send it anyway." : "These are the changes since the last try. Press again to send them.";
};
let saving = 0;
const changed = EditorView.updateListener.of((update) => {
  if (!update.docChanged) return;
  area.value = update.state.doc.toString();
  if (reviewed) queueMicrotask(() => review(false));
  clearTimeout(saving);
  saving = setTimeout(() => stored((storage) => (area.value === before ? storage.removeItem(key) : storage.setItem(key, area.value))), 300);
});

// Chromium's own replacement of several lines sets inline styles, which the page's policy refuses with a message.
const overLines = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { from, to } = view.state.selection.main;
    if (event.inputType !== "insertText" || event.data === null || to <= view.state.doc.lineAt(from).to) return false;
    view.dispatch(view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true }));
    return true;
  },
});
const send = () => {
  form.requestSubmit(button);
  return true;
};
const root = place.attachShadow({ mode: "open" });
const view = new EditorView({
  root,
  parent: root,
  state: EditorState.create({
    doc: start,
    extensions: [
      keymap.of([{ key: "Mod-Enter", run: send }, ...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
      history(), lineNumbers(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(),
      indentUnit.of("    "), EditorState.tabSize.of(4), syntaxHighlighting(colors), look, changed, changes.of([]),
      place.dataset.lang === "cpp" ? cpp() : python(),
      failing, overLines,
      EditorView.contentAttributes.of({ "aria-label": "Source", "aria-describedby": "keys", tabindex: "0" }),
    ],
  }),
});
area.value = start;
area.closest(".field").hidden = true;
place.hidden = false;
if (draft !== null) {
  said.textContent = "Your draft was restored.";
  document.getElementById("discard").hidden = false;
}
document.getElementById("discard").addEventListener("click", (event) => {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: before } });
  said.textContent = "";
  event.currentTarget.hidden = true;
  view.focus();
});

// Escape, then Tab, leaves the editor: CodeMirror's own way out of an editor that takes the Tab key.
form.addEventListener("submit", (event) => {
  if (!reviewed) {
    event.preventDefault();
    review(true);
    return;
  }
  clearTimeout(saving);
  stored((storage) => storage.removeItem(key));
  setTimeout(() => (button.disabled = true));
});
addEventListener("pageshow", () => (button.disabled = false));

const line = Math.min(Math.max(Number(place.dataset.line) || 1, 1), view.state.doc.lines);
const at = view.state.doc.line(line).from;
view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
view.focus();
