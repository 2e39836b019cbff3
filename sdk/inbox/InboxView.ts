/** The visible parts of `<bailiwick-inbox>`: the bell with its badge, and the panel. */
import type { Notification, Problem } from "../client/Client.ts"
import type { InboxFeed } from "./InboxFeed.ts"
import { InboxList } from "./InboxList.ts"
import { bellIcon, button, element } from "./InboxParts.ts"
import { InboxSettings } from "./InboxSettings.ts"
import type { InboxWords } from "./InboxWords.ts"

export interface ViewActions {
  readonly feed: InboxFeed
  readonly words: InboxWords
  readonly language: () => string
  readonly retry: () => void
  /** Called when a notification's link is followed; returns whether the page went there itself. */
  readonly opened: (notification: Notification) => boolean
}

/** Arrivals within this time are announced together. */
const togetherMillis = 500

/** The distance between the panel, the bell and the edges of the window. */
const gap = 8

export class InboxView {
  readonly #actions: ViewActions
  readonly #list: InboxList
  readonly #settings: InboxSettings
  readonly #badge = element("span", "badge", { "aria-hidden": "true" })
  readonly #bell = element("button", "bell", { type: "button" }, bellIcon(), this.#badge)
  readonly #heading: HTMLElement
  readonly #markAll: HTMLButtonElement
  readonly #settingsButton: HTMLButtonElement
  readonly #notice = element("p", "notice", { role: "status" })
  readonly #problem = element("p", "notice refused", { role: "alert" })
  readonly #retry: HTMLButtonElement
  readonly #more: HTMLButtonElement
  readonly #panel: HTMLElement
  /** Outside of the panel: a screen reader does not announce text in a closed popover. */
  readonly #said = element("div", "said", { role: "status", "aria-live": "polite" })
  #arrived: Array<string> = []

  constructor(root: ShadowRoot, actions: ViewActions) {
    const { feed, words } = actions
    this.#actions = actions
    this.#list = new InboxList(words, {
      markRead: (one) => void this.#act(() => feed.markRead(one.id)),
      open: (one, elsewhere) => this.#open(one, elsewhere),
    })
    this.#settings = new InboxSettings(feed.api, words, (action) => this.#act(action))
    this.#heading = element("h2", "heading", { id: "heading" }, words.notifications)
    this.#markAll = button("mark-all", words.markAllRead, () => void this.#readAll())
    this.#settingsButton = button("settings-button", words.settings, () => this.#toggleSettings())
    this.#settingsButton.setAttribute("aria-controls", "settings")
    this.#settingsButton.ariaExpanded = "false"
    this.#retry = button("retry", words.retry, actions.retry)
    this.#more = button("more", words.more, () => void this.#showMore())
    const head = element("div", "head", {}, this.#heading, this.#markAll, this.#settingsButton)
    const labels = { "aria-labelledby": "heading", tabindex: "-1" }
    this.#panel = element("div", "panel", labels, head, this.#problem, this.#notice, this.#retry, this.#list.list)
    this.#panel.append(this.#more, this.#settings.section)
    this.#panel.addEventListener("toggle", (event) => this.#toggled((event as ToggleEvent).newState === "open"))
    root.replaceChildren(this.#bell, this.#panel, this.#said)
    this.#problem.hidden = true
  }

  /** As a panel in its place, or behind the bell. */
  layout(inline: boolean): void {
    this.#bell.hidden = inline
    this.#panel.popover = inline ? null : "auto"
    this.#panel.role = inline ? "region" : "dialog"
    this.#bell.popoverTargetElement = inline ? null : this.#panel
  }

  show(): void {
    const { feed, language, words } = this.#actions
    const { items, more, offline, ready, refusal, unread } = feed
    this.#badge.hidden = unread === 0
    this.#badge.textContent = unread > 99 ? "99+" : String(unread)
    this.#bell.ariaLabel = words.notifications + (unread === 0 ? "" : `, ${words.unread(unread)}`)
    this.#markAll.ariaDisabled = String(unread === 0)
    this.#panel.ariaBusy = String(!ready && refusal === undefined && !offline)
    const refused = refusal?.status === 401 ? words.signIn : refusal?.message
    const empty = items.length === 0 ? words.empty : ""
    const notice = refused ?? (offline ? words.offline : ready ? empty : words.loading)
    // A screen reader would read the same text again.
    if (this.#notice.textContent !== notice) this.#notice.textContent = notice
    this.#notice.classList.toggle("refused", refusal !== undefined)
    const settings = !this.#settings.section.hidden
    this.#notice.hidden = notice === "" || settings
    this.#retry.hidden = refusal === undefined || settings
    this.#list.list.hidden = refusal?.status === 401 || settings
    this.#more.hidden = !more || this.#list.list.hidden
    this.#list.show(items, language())
  }

  /** Announces a new notification to screen readers. */
  announce({ title }: Notification): void {
    this.#arrived.push(title)
    if (this.#arrived.length > 1) return
    setTimeout(() => {
      this.#say(this.#actions.words.arrived(this.#arrived.length, this.#arrived.at(-1)!))
      this.#arrived = []
    }, togetherMillis)
  }

  /** Puts the panel under the bell, or above it where there is more room, within the window. */
  place(): void {
    if (!this.#panel.matches("[popover]:popover-open")) return
    const { bottom, left, right, top } = this.#bell.getBoundingClientRect()
    const { clientHeight, clientWidth } = document.documentElement
    const { offsetWidth: width, style } = this.#panel
    const rtl = getComputedStyle(this.#panel).direction === "rtl"
    style.left = `${Math.max(gap, Math.min(rtl ? left : right - width, clientWidth - width - gap))}px`
    const below = clientHeight - bottom >= top
    style.top = below ? `${bottom + gap}px` : "auto"
    style.bottom = below ? "auto" : `${clientHeight - top + gap}px`
    style.maxHeight = `min(36rem, ${Math.max(below ? clientHeight - bottom : top, 0) - 2 * gap}px)`
  }

  #say(text: string): void {
    this.#said.textContent = text
  }

  #toggled(open: boolean): void {
    if (open) {
      this.place()
      this.#panel.focus()
      return
    }
    // Chromium does not give back a focus that was within a shadow tree, and takes it from what is hidden somewhat later.
    // A focus outside of the element stays there.
    const within = this.#panel.contains((this.#panel.getRootNode() as ShadowRoot).activeElement)
    if (within || document.activeElement === document.body) this.#bell.focus()
  }

  /** Runs the action of a press and shows its refusal; returns whether it succeeded. */
  async #act(action: () => Promise<unknown>): Promise<boolean> {
    const refused = await action().then(() => undefined, (error: Problem) => error)
    this.#problem.textContent = refused?.message ?? ""
    this.#problem.hidden = refused === undefined
    return refused === undefined
  }

  async #readAll(): Promise<void> {
    const { feed, words } = this.#actions
    if (await this.#act(() => feed.markAllRead())) this.#say(words.allRead)
  }

  async #showMore(): Promise<void> {
    let first: string | undefined
    await this.#act(async () => {
      first = await this.#actions.feed.loadMore()
    })
    this.#list.focus(first)
  }

  #open(notification: Notification, elsewhere: boolean): boolean {
    if (notification.read_at === null) void this.#act(() => this.#actions.feed.markRead(notification.id))
    const own = !elsewhere && this.#actions.opened(notification)
    if (own && this.#panel.popover !== null) this.#panel.hidePopover()
    return own
  }

  #toggleSettings(): void {
    const { section } = this.#settings
    section.hidden = !section.hidden
    this.#settingsButton.ariaExpanded = String(!section.hidden)
    this.#settingsButton.textContent = section.hidden ? this.#actions.words.settings : this.#actions.words.back
    this.#markAll.hidden = !section.hidden
    if (!section.hidden) void this.#settings.load()
    this.show()
  }
}
