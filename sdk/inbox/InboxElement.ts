/**
 * `<bailiwick-inbox>`: the notifications of an account, live, for any page.
 *
 * ```html
 * <script type="module" src="/inbox.js"></script>
 * <bailiwick-inbox base="/bailiwick"></bailiwick-inbox>
 * ```
 * @module
 */
import { InboxFeed } from "./InboxFeed.ts"
import type { InboxNotification } from "./InboxNotification.ts"
import { inboxSheet } from "./InboxStyle.ts"
import { InboxView } from "./InboxView.ts"
import { english, type InboxWords } from "./InboxWords.ts"

export type { InboxNotification, InboxWords }

/** Where there is no page, as on a server, the module loads and defines nothing. */
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement)

/** Relative times are made anew this often. */
const minuteMillis = 60_000

/**
 * The element. Attributes: `base`, the path under which the API is reached (by default the page's origin), and `inline`,
 * which shows the list in its place instead of behind a bell. Events, which leave the shadow tree: `bailiwick-unread`
 * (`{ unread, total }`), `bailiwick-notification` (one came), and `bailiwick-open` (one's link was followed; prevent its
 * default to go there yourself).
 */
export class BailiwickInbox extends Base {
  static readonly observedAttributes: ReadonlyArray<string> = ["base", "inline"]

  // Declared and not set: a page may have set them before the element was defined.
  /** Sends every request; by default the page's own. */
  declare fetch: typeof globalThis.fetch | undefined
  /** The cookies that go with a request; "same-origin" by default. */
  declare credentials: RequestCredentials | undefined
  /** An API key or access token, or a function that returns the current one. Every visitor of the page can read it. */
  declare token: string | (() => string | undefined | Promise<string | undefined>) | undefined
  /** Words that replace the English ones. */
  declare words: Partial<InboxWords> | undefined

  #feed: InboxFeed | undefined
  #view: InboxView | undefined
  #stream: AbortController | undefined
  #connection: AbortController | undefined
  #counts = ""

  /** How many notifications are unread. */
  get unread(): number {
    return this.#feed?.unread ?? 0
  }

  /** How many notifications there are. */
  get total(): number {
    return this.#feed?.total ?? 0
  }

  connectedCallback(): void {
    const connection = new AbortController()
    this.#connection = connection
    const { signal } = connection
    const place = () => this.#view?.place()
    document.addEventListener("visibilitychange", () => this.#follow(), { signal })
    addEventListener("online", () => this.#follow(), { signal })
    addEventListener("resize", place, { signal })
    addEventListener("scroll", place, { signal, capture: true, passive: true })
    const minutes = setInterval(() => this.#view?.show(), minuteMillis)
    signal.addEventListener("abort", () => clearInterval(minutes))
    // A framework may set the properties once the element is in the page.
    queueMicrotask(() => {
      if (signal.aborted) return
      if (this.#feed === undefined) this.reconnect()
      else this.#follow()
    })
  }

  disconnectedCallback(): void {
    this.#connection?.abort()
    this.#stream?.abort()
  }

  attributeChangedCallback(name: string): void {
    if (name === "inline") this.#view?.layout(this.hasAttribute("inline"))
    else if (this.#feed !== undefined) this.reconnect()
  }

  /** Forgets what was read and begins anew, as after another sign-in or other words. */
  reconnect(): void {
    if (!this.isConnected) return
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" })
    root.adoptedStyleSheets = [inboxSheet()]
    const feed: InboxFeed = new InboxFeed({
      base: this.getAttribute("base") ?? "",
      // Without a token the client sends no header.
      token: () => typeof this.token === "function" ? this.token() : this.token,
      fetch: (input, init) => {
        const fetch = this.fetch ?? globalThis.fetch
        return fetch(input, { ...init, credentials: this.credentials ?? "same-origin" })
      },
      changed: () => feed === this.#feed && this.#changed(),
      arrived: (notification) => {
        if (feed !== this.#feed) return
        this.#view?.announce(notification)
        this.#tell("bailiwick-notification", notification)
      },
    })
    this.#feed = feed
    this.#view = new InboxView(root, {
      feed,
      words: { ...english, ...this.words },
      language: () => this.closest<HTMLElement>("[lang]")?.lang || "en",
      retry: () => this.#follow(),
      opened: (notification) => !this.#tell("bailiwick-open", notification),
    })
    this.#view.layout(this.hasAttribute("inline"))
    this.#follow()
  }

  /** Follows the stream while the page is seen: a hidden page would hold one of the browser's few connections. */
  #follow(): void {
    this.#stream?.abort()
    this.#view?.show()
    if (this.#connection?.signal.aborted || document.visibilityState === "hidden") return
    this.#stream = new AbortController()
    void this.#feed?.follow(this.#stream.signal)
  }

  #changed(): void {
    this.#view?.show()
    const detail = { unread: this.unread, total: this.total }
    const counts = JSON.stringify(detail)
    if (this.#feed?.ready && this.#counts !== counts) this.#tell("bailiwick-unread", detail)
    if (this.#feed?.ready) this.#counts = counts
  }

  /** Dispatches an event; returns whether its default is wanted. */
  #tell(name: string, detail: unknown): boolean {
    return this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }))
  }
}

if ("customElements" in globalThis && customElements.get("bailiwick-inbox") === undefined) {
  customElements.define("bailiwick-inbox", BailiwickInbox)
}

declare global {
  interface HTMLElementTagNameMap {
    "bailiwick-inbox": BailiwickInbox
  }
  interface HTMLElementEventMap {
    "bailiwick-unread": CustomEvent<{ readonly unread: number; readonly total: number }>
    "bailiwick-notification": CustomEvent<InboxNotification>
    "bailiwick-open": CustomEvent<InboxNotification>
  }
}
