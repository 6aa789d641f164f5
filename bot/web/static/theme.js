// Sets the theme that was chosen in this browser, before anything is painted. By default the system's theme applies.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch (refused) {
    return; // no storage: the system's theme
  }
})();
