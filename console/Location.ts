/** The address of the page, and how it changes: History API, no reload. */
import { computed, signal } from "@preact/signals"

const address = signal(location.href)

/**
 * Whether this page is in a frame of another origin (EMBED_ORIGINS). The document's address stays what it is there: no
 * other address of the console may be framed, so that a frame that is loaded anew would be refused.
 */
export const embedded = location.pathname === "/console/embed"

/** The address of the page. */
export const here = computed(() => new URL(address.value))

/** Goes to a page of the console. `replace`: the page before stays out of the history, as for filters. */
export const go = (to: string, { replace = false } = {}): void => {
  const url = new URL(to, address.value)
  if (url.href === address.value) return
  if (embedded) {
    if (!replace) scrollTo(0, 0)
    address.value = url.href
    return
  }
  if (replace) history.replaceState(null, "", url)
  else {
    history.pushState(null, "", url)
    scrollTo(0, 0)
  }
  address.value = location.href
}

/** Sets and, by undefined or "", takes away parts of the query. */
export const setQuery = (change: Readonly<Record<string, string | undefined>>): void => {
  const url = new URL(address.value)
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === "") url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  }
  go(url.href, { replace: true })
}

/** The parameters of a path, by name. */
export type Params = Readonly<Record<string, string>>

/** A part of a path; null where its escapes stand for no text. */
const decoded = (part: string): string | null => {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}

/** The parameters of a path by its pattern, `/console/webhooks/:webhook_id`; null where it is another path. */
export const paramsOf = (pattern: string, path: string): Params | null => {
  const parts = path.replace(/\/$/, "").split("/")
  const asked = pattern.replace(/\/$/, "").split("/")
  if (parts.length !== asked.length) return null
  const params: Record<string, string> = {}
  for (const [n, part] of asked.entries()) {
    const found = parts[n]!
    if (!part.startsWith(":")) {
      if (part !== found) return null
      continue
    }
    const value = decoded(found)
    if (value === null) return null
    params[part.slice(1)] = value
  }
  return params
}

/** The paths below /console that the server itself answers. */
const ofServer = /^\/console\/(sign-in|callback|sign-out|assets)(\/|$)/

const onClick = (event: MouseEvent): void => {
  if (
    event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey
  ) {
    return
  }
  const link = event.target instanceof Element ? event.target.closest("a") : null
  if (link === null || link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return
  if (!link.pathname.startsWith("/console/") || ofServer.test(link.pathname)) return
  // The skip link, and others to a place on the page.
  if (link.hash !== "" && link.pathname === location.pathname && link.search === location.search) return
  event.preventDefault()
  go(link.href)
}

/** Follows links within the console, and the browser's own back and forward. */
export const followLinks = (): void => {
  document.addEventListener("click", onClick)
  addEventListener("popstate", () => {
    if (!embedded) address.value = location.href
  })
}
