/** The list of notifications, changed in place so that focus and reading position stay. */
import type { Notification } from "../client/Client.ts"
import { button, element, safeHref } from "./InboxParts.ts"
import type { InboxWords } from "./InboxWords.ts"

export interface ListActions {
  readonly markRead: (notification: Notification) => void
  /**
   * Called when a link is followed; `elsewhere`: into another tab or window. Returns true to keep the browser from
   * following it.
   */
  readonly open: (notification: Notification, elsewhere: boolean) => boolean
}

interface Row {
  readonly item: HTMLLIElement
  readonly title: HTMLAnchorElement
  readonly show: (notification: Notification) => void
}

const units = [["day", 86_400], ["hour", 3_600], ["minute", 60]] as const

/** `5 minutes ago`; the date after a week. */
const timeOf = (at: string, language: string): string => {
  const seconds = Math.max(0, Date.now() - Date.parse(at)) / 1_000
  if (seconds > 7 * 86_400) return new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(Date.parse(at))
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ["second", 60]
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" })
  return relative.format(unit === "second" ? 0 : -Math.trunc(seconds / size), unit)
}

export class InboxList {
  readonly list = element("ul", "list", { role: "list" })
  readonly #rows = new Map<string, Row>()
  readonly #words: InboxWords
  readonly #actions: ListActions

  constructor(words: InboxWords, actions: ListActions) {
    this.#words = words
    this.#actions = actions
    this.list.addEventListener("keydown", (event) => this.#move(event))
  }

  /** Puts the focus on a notification. */
  focus(id: string | undefined): void {
    if (id !== undefined) this.#rows.get(id)?.title.focus()
  }

  show(notifications: ReadonlyArray<Notification>, language: string): void {
    const root = this.list.getRootNode() as ShadowRoot
    const focused = root.activeElement as HTMLElement | null
    const gone = new Set(this.#rows.keys())
    let place = this.list.firstElementChild
    for (const notification of notifications) {
      const { created_at, id } = notification
      gone.delete(id)
      const row = this.#rows.get(id) ?? this.#row(id)
      row.show(notification)
      const time = row.item.querySelector("time")!
      time.dateTime = created_at
      time.title = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "short" }).format(
        Date.parse(created_at),
      )
      time.textContent = timeOf(created_at, language)
      if (row.item === place) place = place.nextElementSibling
      else this.list.insertBefore(row.item, place)
    }
    for (const id of gone) {
      this.#rows.get(id)!.item.remove()
      this.#rows.delete(id)
    }
    // An element that is moved loses the focus.
    if (focused !== root.activeElement && this.list.contains(focused)) focused!.focus()
  }

  #row(id: string): Row {
    let notification: Notification | undefined
    const title = element("a", "title", { tabindex: "0" })
    const body = element("p", "body")
    const severity = element("span", "severity")
    const read = button("read", this.#words.markRead, () => {
      // Marking removes the button, and with it the focus.
      title.focus()
      this.#actions.markRead(notification!)
    })
    const foot = element("div", "foot", {}, severity, element("time", "time"), read)
    const item = element("li", "item", {}, title, body, foot)
    title.addEventListener("click", (event) => {
      const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey
      if (this.#actions.open(notification!, elsewhere)) event.preventDefault()
    })
    const show = (next: Notification) => {
      if (next === notification) return
      notification = next
      const state = next.read_at === null ? "unread" : ""
      item.className = `item ${state}`
      item.setAttribute("part", `item ${state} ${next.severity}`)
      const href = safeHref(next.href)
      if (href === undefined) title.removeAttribute("href")
      else title.href = href
      title.textContent = next.title
      body.textContent = next.body
      severity.className = `severity ${next.severity}`
      severity.textContent = this.#words.severities[next.severity]
      read.hidden = next.read_at !== null
      read.ariaLabel = `${this.#words.markRead}: ${next.title}`
    }
    const row = { item, title, show }
    this.#rows.set(id, row)
    return row
  }

  /** The arrow keys, Home and End go from one notification to another. */
  #move(event: KeyboardEvent): void {
    const titles = [...this.list.querySelectorAll<HTMLElement>(".title")]
    const item = (event.target as Element).closest("li")
    const at = titles.findIndex((one) => one.closest("li") === item)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: titles.length - 1 }[event.key]
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    titles[to]?.focus()
  }
}
