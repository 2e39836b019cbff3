/** The signed-in visitor, as `GET /v1/console/session` describes it, and who sees which screen. */
import { computed, signal } from "@preact/signals"
import { ask, credential, type Refused } from "./contract/Ask.ts"
import type { AnswerOf } from "./contract/EndpointTypes.ts"
import { draftsOf } from "./Drafts.ts"
import { embedded } from "./Location.ts"
import { forgetAll } from "./Resource.ts"

export type Session = AnswerOf<"consoleSession">

/** Undefined until the first answer. */
export const session = signal<Session | undefined>(undefined)
export const sessionFailure = signal<Refused | null>(null)

/** Whether a page in a frame has no session, or no longer one. */
export const embedEnded = signal(false)

/** Whether the console, or this visitor, may change nothing. */
export const readOnly = computed(() => session.value?.mode === "read")

/** Whether the visitor is an auditor, to whom nothing that changes something is offered. */
export const auditing = computed(() => session.value?.auditor === true)

/** The installation's own name. */
export const brandName = computed(() => session.value?.brand.name ?? "")

/** Tells the other tabs of this browser that the session changed. */
const tabs = new BroadcastChannel("console-session")

const holderOf = (one: Session) => `${one.account?.id} ${one.person?.person_id}`

/** A person's session may come back from a step-up without its mail account, and is still the one who typed. */
const drafterOf = (one: Session) => String(one.person?.person_id ?? one.account?.id)

/** Exchanges the link's token, once. The session lives in this page's memory, and ends with it. */
const openEmbedded = async (): Promise<void> => {
  const token = location.hash.slice(1)
  if (token === "") {
    embedEnded.value = true
    return
  }
  history.replaceState(null, "", location.pathname)
  try {
    const opened = await ask("openEmbedSession", { payload: { token } })
    credential.token = opened.token
    session.value = opened.session
  } catch {
    embedEnded.value = true
  }
}

/** Asks anew for the visitor. Another one than before sees nothing of what the one before was shown. */
export const loadSession = async (): Promise<void> => {
  if (embedded) return openEmbedded()
  try {
    const next = await ask("consoleSession", {})
    if (session.value === undefined || holderOf(next) !== holderOf(session.value)) forgetAll()
    draftsOf(drafterOf(next))
    session.value = next
    sessionFailure.value = null
  } catch (cause) {
    sessionFailure.value = cause as Refused
  }
}

/** Asks at the beginning, when another tab signed in or out, and when the tab is looked at again. */
export const followSession = (): void => {
  void loadSession()
  if (embedded) return
  tabs.addEventListener("message", () => void loadSession())
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && session.value !== undefined) void loadSession()
  })
}

/** Signs out here, or everywhere, and leaves for the issuer's own sign-out where it has one. */
export const signOut = async (everywhere: boolean): Promise<void> => {
  const response = await fetch("/console/sign-out", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ everywhere }),
  })
  const { location: to } = await response.json() as { readonly location: string }
  tabs.postMessage("signed out")
  location.assign(to)
}

/** The address at which a visitor signs in at an issuer, and returns to this page. */
export const signInAddress = (issuer: string | null, more: Readonly<Record<string, string>> = {}): string => {
  const query = new URLSearchParams({ ...(issuer === null ? {} : { issuer }), ...more })
  query.set("return", location.pathname + location.search)
  return `/console/sign-in?${query}`
}

/** Decides whether a visitor sees a screen; the API decides what they may do there. */
export type Sees = (one: Session) => boolean

export const anyone: Sees = (one) => one.session !== null
/** A mail account. */
export const account: Sees = (one) => one.account !== null
export const transferring: Sees = (one) => one.account !== null && one.features.transfers
export const platformAdmin: Sees = (one) => one.account?.platform_admin === true && one.features.transfers
/** A person of the directory. */
export const person: Sees = (one) => one.person !== null
export const operator: Sees = (one) => one.operator
/** A reader of the audit. */
export const auditReader: Sees = (one) => one.operator || one.auditor
/** A person who may act. */
export const actor: Sees = (one) => one.person !== null && !one.auditor
/** A sponsor or an administrator of an institution, or an auditor. */
export const reviewReader: Sees = (one) =>
  one.auditor || one.institutions.some(({ roles }) => roles.some((role) => role !== "member"))
/** A person who may have something to decide. */
export const signer: Sees = (one) => one.operator || !one.auditor && reviewReader(one)
/** A person with a part in an institution. */
export const member: Sees = (one) => one.institutions.length > 0
/** A person who owns a project. */
export const owner: Sees = (one) => one.projects.length > 0
/** A person who owns a project and signs nothing. */
export const ownerOnly: Sees = (one) => owner(one) && actor(one) && !signer(one)

/** The visitor's effective roles in an institution. */
export const rolesIn = (institution_id: string): ReadonlySet<string> =>
  new Set(session.value?.institutions.find((one) => one.institution_id === institution_id)?.roles)
