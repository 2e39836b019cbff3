/**
 * The table of lifecycle event kinds (docs/api/identity.md): the kind's name on the bus, its event type, and its
 * subject. The base of the URIs is one constant for every installation; a new version of a type is a new URI.
 */
const own = (name: string) => `https://schemas.bailiwick.dev/secevent/lifecycle/event-type/${name}`
const caep = (name: string) => `https://schemas.openid.net/secevent/caep/event-type/${name}`
const risc = (name: string) => `https://schemas.openid.net/secevent/risc/event-type/${name}`

export const lifecycleEventKinds = {
  "access-granted": { uri: own("access-granted"), about: "access" },
  "access-revoked": { uri: own("access-revoked"), about: "access" },
  "token-claims-change": { uri: caep("token-claims-change"), about: "access" },
  "account-disabled": { uri: risc("account-disabled"), about: "person" },
  "account-enabled": { uri: risc("account-enabled"), about: "person" },
  "account-purged": { uri: risc("account-purged"), about: "person" },
  "session-revoked": { uri: caep("session-revoked"), about: "person" },
  "credential-change": { uri: caep("credential-change"), about: "person" },
  "credential-compromise": { uri: risc("credential-compromise"), about: "person" },
  "recovery-information-changed": { uri: risc("recovery-information-changed"), about: "person" },
  "assurance-level-change": { uri: caep("assurance-level-change"), about: "person" },
  "identity-linked": { uri: own("identity-linked"), about: "person" },
  "project-registered": { uri: own("project-registered"), about: "project" },
  "project-launched": { uri: own("project-launched"), about: "project" },
  "project-withdrawn": { uri: own("project-withdrawn"), about: "project" },
  "project-owner-changed": { uri: own("project-owner-changed"), about: "project" },
  "service-grant-approved": { uri: own("service-grant-approved"), about: "project" },
  "service-grant-revoked": { uri: own("service-grant-revoked"), about: "project" },
  "access-review-approved": { uri: own("access-review-approved"), about: "access" },
  "access-review-revoked": { uri: own("access-review-revoked"), about: "access" },
  "key-transition": { uri: own("key-transition"), about: "project" },
} as const satisfies Record<string, { readonly uri: string; readonly about: "access" | "person" | "project" }>

export type LifecycleEventKind = keyof typeof lifecycleEventKinds

/** The event types that there are. */
export const eventsSupported: ReadonlyArray<string> = Object.values(lifecycleEventKinds).map(({ uri }) => uri)
