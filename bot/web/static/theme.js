// Before anything is painted: the theme that was chosen here, else the system's.
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
