/** The preferences: by which channels an account is told of which category. */
import type { Client } from "../client/Client.ts"
import { element } from "./InboxParts.ts"
import type { InboxWords } from "./InboxWords.ts"

const categories = ["alerts", "sends", "team", "domains"] as const
const channels = ["web", "email", "slack"] as const

export class InboxSettings {
  readonly section: HTMLElement
  readonly #api: Client
  readonly #words: InboxWords
  readonly #act: (action: () => Promise<unknown>) => Promise<boolean>

  constructor(api: Client, words: InboxWords, act: (action: () => Promise<unknown>) => Promise<boolean>) {
    this.#api = api
    this.#words = words
    this.#act = act
    this.section = element("section", "settings", { id: "settings", "aria-label": words.settings, hidden: "" })
  }

  /** Reads the preferences anew. */
  async load(): Promise<void> {
    await this.#act(async () => {
      const { preferences } = await this.#api.get("/v1/notifications/preferences")
      const { categories: names, channels: channelNames } = this.#words
      this.section.replaceChildren(...categories.map((category) =>
        element(
          "fieldset",
          "category",
          {},
          element("legend", "", {}, names[category]),
          ...channels.map((channel) => {
            const box = element("input", "", { type: "checkbox" })
            box.checked = preferences[category][channel]
            box.addEventListener("change", () => void this.#change(box, category, channel))
            return element("label", "channel", {}, box, channelNames[channel])
          }),
        )
      ))
    })
  }

  async #change(
    box: HTMLInputElement,
    category: (typeof categories)[number],
    channel: (typeof channels)[number],
  ): Promise<void> {
    const chosen = box.checked
    const body = { preferences: { [category]: { [channel]: chosen } } }
    const done = await this.#act(() => this.#api.put("/v1/notifications/preferences", { body }))
    if (!done) box.checked = !chosen
  }
}
