/** Decides which Host headers are ours: a page of another origin must not reach this program under its own name. */

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/

/** The Host of an origin, without the port that its scheme implies. */
const authority = (url: string): string | undefined => URL.canParse(url) ? new URL(url).host : undefined

const normal = (host: string) => host.toLowerCase().replace(/:(?:80|443)$/, "")

/** `bound` is HOST:PORT. */
export const hosts = (bound: string, publicUrl: string | undefined) => {
  const ours = new Set([bound, publicUrl && authority(publicUrl)].flatMap((host) => host ? [normal(host)] : []))
  return (host: string | undefined): boolean =>
    host !== undefined && (loopback.test(host.toLowerCase()) || ours.has(normal(host)))
}
