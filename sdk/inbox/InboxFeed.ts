/** The state of an inbox: the newest notifications as far as they were read, kept current by the live stream. */
import { type Client, client, type Notification, type NotificationEvent, Problem } from "../client/Client.ts"

/** How the feed reaches the API; each member is asked for at every request. */
export interface FeedOptions {
  readonly base: string
  readonly token: () => string | undefined | Promise<string | undefined>
  readonly fetch: typeof globalThis.fetch
  /** Called after each change. */
  readonly changed: () => void
  /** Called with a notification that the stream announced, and that is unread. */
  readonly arrived: (notification: Notification) => void
}

const pageSize = 20

/** How long the list waits for the stream's first event before it is read without it. */
const patienceMillis = 1_000

/** The pause after a stream that failed for a passing reason. */
const againMillis = 3_000

const pause = (millis: number) => new Promise((done) => setTimeout(done, millis))

/** Whether `a` comes before `b` in the list: newest first, by time and id. */
const before = (a: Notification, b: Notification) =>
  a.created_at === b.created_at ? a.id > b.id : a.created_at > b.created_at

/** Whether the program, or a proxy before it, cannot answer now. */
const isAway = (status: number) => status === 0 || status >= 502 && status <= 504

export class InboxFeed {
  items: ReadonlyArray<Notification> = []
  total = 0
  unread = 0
  /** Whether older notifications than the items follow. */
  more = false
  /** Whether a list was read. */
  ready = false
  /** Whether the last request got no answer. */
  offline = false
  /** The refusal that ended the stream. */
  refusal: Problem | undefined

  readonly api: Client
  readonly #options: FeedOptions
  /** The stream's last event that the items have in them. */
  #position: string | undefined
  /** Reads of the list that were begun. */
  #loads = 0

  constructor(options: FeedOptions) {
    this.#options = options
    this.api = client({ url: options.base, token: options.token, fetch: (input, init) => this.#fetch(input, init) })
  }

  async #fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    let status = 0
    try {
      // A page that is left still marks the notification whose link was followed.
      const response = await this.#options.fetch(input, { ...init, keepalive: init?.method === "POST" })
      status = response.status
      return response
    } finally {
      if (!init?.signal?.aborted) this.#set({ offline: isAway(status) })
    }
  }

  #set(change: Partial<Pick<InboxFeed, "offline" | "refusal">>): void {
    Object.assign(this, change)
    this.#options.changed()
  }

  /** Follows the stream until `signal` is aborted or the API refuses; goes on where an earlier one ended. */
  async follow(signal: AbortSignal): Promise<void> {
    this.#set({ refusal: undefined })
    while (!signal.aborted) {
      try {
        await this.#stream(signal)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof Problem && isAway(error.status))) return this.#set({ refusal: error as Problem })
      }
      await pause(againMillis)
    }
  }

  /** Reads the list after the stream's first event, so that no change between the two is missed. */
  async #stream(signal: AbortSignal): Promise<void> {
    // The list is shown even if no stream begins, as where the account has too many.
    const late = setTimeout(() => this.ready || this.#load(signal).catch(() => {}), patienceMillis)
    try {
      for await (const event of this.api.notifications({ signal, lastEventId: this.#position })) {
        clearTimeout(late)
        if (this.#position === undefined || event.event === "reset") await this.#load(signal)
        this.#apply(event)
      }
    } finally {
      clearTimeout(late)
    }
  }

  async #load(signal: AbortSignal): Promise<void> {
    const load = ++this.#loads
    const page = await this.api.get("/v1/notifications", { query: { limit: pageSize }, signal })
    // A later read is at least as new: an answer that it overtook would take back what it showed.
    if (load !== this.#loads) return
    this.items = page.items
    this.total = page.total
    this.unread = page.unread
    this.more = page.next_after_id !== null
    this.ready = true
    this.#options.changed()
  }

  #apply(event: NotificationEvent): void {
    this.#position = event.id
    this.total = event.total
    this.unread = event.unread
    if (event.event === "read-all") {
      this.items = this.items.map((one) => ({ ...one, read_at: one.read_at ?? event.read_at }))
    }
    if (event.event === "notification") {
      const { notification } = event
      const known = this.items.find(({ id }) => id === notification.id)
      this.#put([notification])
      const isNews = known === undefined || before(notification, known)
      if (notification.read_at === null && isNews) this.#options.arrived(notification)
    }
    this.#options.changed()
  }

  /** Puts notifications into their places. One that is older than the items comes with its page. */
  #put(notifications: ReadonlyArray<Notification>, isPage = false): void {
    const known = new Map(this.items.map((one) => [one.id, one]))
    const last = this.items.at(-1)
    for (const one of notifications) {
      if (isPage || known.has(one.id) || !this.more || last === undefined || before(one, last)) known.set(one.id, one)
    }
    this.items = [...known.values()].sort((a, b) => before(a, b) ? -1 : 1)
  }

  /** Reads the next page; returns the id of its first notification. */
  async loadMore(): Promise<string | undefined> {
    const after_id = this.items.at(-1)!.id
    const page = await this.api.get("/v1/notifications", { query: { limit: pageSize, after_id } })
    // The stream changed the end of the list meanwhile: this page may not be the one that follows it.
    if (this.items.at(-1)?.id !== after_id) return undefined
    this.#put(page.items, true)
    this.more = page.next_after_id !== null
    this.#options.changed()
    return page.items[0]?.id
  }

  async markRead(notification_id: string): Promise<void> {
    const position = this.#position
    const read = await this.api.post("/v1/notifications/{notification_id}/read", { params: { notification_id } })
    const known = this.items.find(({ id }) => id === notification_id)
    // If the stream was faster, its event already had the new count.
    if (position === this.#position && known?.read_at === null) this.unread--
    if (known?.created_at === read.created_at) this.#put([read])
    this.#options.changed()
  }

  async markAllRead(): Promise<void> {
    const position = this.#position
    const present = new Map(this.items.map((one) => [one.id, one]))
    await this.api.post("/v1/notifications/read-all")
    // Notifications that came meanwhile may be unread. If the stream was faster, its event already had the new count.
    if (position === this.#position) this.unread = 0
    const read_at = new Date().toISOString()
    this.items = this.items.map((one) =>
      one === present.get(one.id) ? { ...one, read_at: one.read_at ?? read_at } : one
    )
    this.#options.changed()
  }
}
