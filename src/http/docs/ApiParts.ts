/**
 * The four parts of the API, one for each kind of client. Each has a document, so that a client generator makes types of
 * what its client calls, and a reader loads no more: with 169 operations the whole document takes 300 kB, and 219 kB if it
 * had no words and names of two letters (docs/measured.md).
 */

/** The tags of each part; an operation is in one part. */
export const parts = {
  mail: [
    "System",
    "Account",
    "API keys",
    "Webhooks",
    "Deliveries",
    "Notifications",
    "Domain transfers",
    "Console",
  ],
  identity: [
    "Personal account",
    "Assertions",
    "Requests",
    "Institutions",
    "Periodic reviews",
    "Campaigns",
    "Enrollments",
    "Websites",
    "Policy reviews",
    "Access grant reviews",
    "Lifecycle service grants",
  ],
  lifecycle: ["Lifecycle", "Lifecycle keys", "Lifecycle streams", "Lifecycle delivery", "Lifecycle discovery"],
  operator: ["Operations", "Operator", "Signing keys", "Upkeep", "Rollouts"],
} as const satisfies Readonly<Record<string, ReadonlyArray<string>>>

export type Part = keyof typeof parts

export const partNames = Object.keys(parts) as ReadonlyArray<Part>

/** The path of a part's document. */
export const partPath = (part: Part): `/${string}` => `/v1/openapi/${part}.json`

/** The addition of a part's title to that of the whole document. */
export const titles: Readonly<Record<Part, string>> = {
  mail: "the mail API",
  identity: "the identity API",
  lifecycle: "the lifecycle API",
  operator: "the operators' API",
}
