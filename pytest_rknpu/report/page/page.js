"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const boards = read("board-names");
  let tests = null; // parsed when a cell is first asked for
  const [NODE, BOARD, REQUIREMENTS, OUTCOME, SECONDS, MESSAGE, NOTES, FIGURES, SEED] = Array(9).keys();

  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  const describe = (test) => {
    const item = element("details");
    const line = element("summary");
    line.append(element("span", test[OUTCOME], `tag ${test[OUTCOME]}`), " ", element("code", test[NODE]), ` ${test[SECONDS]} s`);
    item.append(line);
    if (test[MESSAGE]) item.append(element("pre", test[MESSAGE]));
    for (const note of test[NOTES]) item.append(element("p", note, "note"));
    if (test[FIGURES].length) {
      const table = element("table");
      for (const [name, value, unit] of test[FIGURES]) {
        const row = table.insertRow();
        row.append(element("th", name));
        row.insertCell().textContent = `${value} ${unit}`.trim();
      }
      item.append(table);
    }
    item.append(element("p", `seed ${test[SEED]}`));
    item.open = test[OUTCOME] !== "pass" && test[OUTCOME] !== "skip";
    return item;
  };

  const show = (requirement, column) => {
    tests ??= read("tests");
    const found = tests.filter((test) => test[BOARD] === column && test[REQUIREMENTS].includes(requirement));
    byId("detail-title").textContent = `${requirement} on ${boards[column]}: ${found.length} tests`;
    byId("detail-body").replaceChildren(...found.map(describe));
    byId("detail").hidden = false;
    byId("detail-title").focus();
  };

  const table = byId("matrix-table");
  table.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) show(button.dataset.row, Number(button.dataset.column));
  });

  const heads = [...table.tHead.rows[0].cells].slice(1);
  const rows = [...table.tBodies[0].rows];
  const filter = () => {
    const text = byId("filter-text").value.trim().toLowerCase();
    const board = byId("filter-board").value;
    const evidence = byId("filter-evidence").value;
    const outcome = byId("filter-outcome").value;
    const shown = heads.map((head) => (!board || head.dataset.board === board) && (!evidence || head.dataset.evidence === evidence));
    heads.forEach((head, place) => { head.hidden = !shown[place]; });
    let count = 0;
    for (const row of rows) {
      const cells = [...row.cells].slice(1);
      cells.forEach((cell, place) => { cell.hidden = !shown[place]; });
      const fits = !outcome || cells.some((cell, place) => shown[place] && cell.classList.contains(outcome));
      row.hidden = !(fits && row.dataset.text.includes(text));
      count += row.hidden ? 0 : 1;
    }
    byId("filter-count").textContent = `${count} of ${rows.length} requirements, ${shown.filter(Boolean).length} of ${heads.length} boards`;
  };
  byId("filters").addEventListener("input", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  filter();
})();
