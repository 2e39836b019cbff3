/** Makes elements; texts are set as texts, never read as markup. */

type Attributes = Readonly<Record<string, string>>

/** An element of this class, which is its part as well, with these attributes and children. */
export const element = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  name: string,
  attributes: Attributes = {},
  ...children: ReadonlyArray<Node | string>
): HTMLElementTagNameMap[Tag] => {
  const made = document.createElement(tag)
  if (name !== "") made.className = name
  if (name !== "") made.setAttribute("part", name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

/** A button that calls `press` unless it is marked as disabled: it keeps the focus where it is. */
export const button = (name: string, text: string, press: () => unknown): HTMLButtonElement => {
  const made = element("button", name, { type: "button" }, text)
  made.addEventListener("click", () => made.ariaDisabled === "true" || press())
  return made
}

/** A bell; a page may put its own icon into the slot `icon`. */
export const bellIcon = (): HTMLSlotElement => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg")
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path")
  svg.setAttribute("viewBox", "0 0 24 24")
  svg.setAttribute("aria-hidden", "true")
  path.setAttribute("d", "M6 16V10a6 6 0 0 1 12 0v6l2 2H4zM10 21h4")
  svg.append(path)
  const slot = element("slot", "", { name: "icon" })
  slot.append(svg)
  return slot
}

/** An address that a link may have: a path of the app, no script and no other origin. */
export const safeHref = (href: string): string | undefined => /^\/(?![/\\])/.test(href) ? href : undefined
