/**
 * A client of the API: typed calls, problems as classes, repeated requests, pages, live notifications.
 *
 * ```ts
 * const bailiwick = client({ url: "https://bailiwick.example.com", token: "mail_k_…" })
 * const webhooks = await bailiwick.get("/v1/webhooks/")
 * ```
 * @module
 */
import type { Operations } from "./Contract.ts"
import { type NotificationEvent, notificationsOf, type NotificationsOptions } from "./NotificationFeed.ts"
import { type AnyRequest, callOf, type CallOptions, type ClientOptions, type Method, senderOf } from "./Transport.ts"

export type * from "./Contract.ts"
export { Problem, type ProblemClass, type ProblemCode, type ProblemOf, problems } from "./ClientProblem.ts"
export type { CallOptions, ClientOptions, NotificationEvent, NotificationsOptions }
export {
  type RequestHeaders,
  verifyWebhook,
  type WebhookEvent,
  WebhookRefused,
  type WebhookRequest,
} from "./VerifyWebhook.ts"

/** The paths that have a method. */
export type PathOf<Way extends Method> = keyof Operations extends infer Name
  ? Name extends `${Way} ${infer Path}` ? Path : never
  : never

type Operation<Way extends Method, Path extends string> = `${Way} ${Path}` extends keyof Operations
  ? Operations[`${Way} ${Path}`]
  : never

/** The request of an operation: `params`, `query`, `headers`, `body`, as far as it has them. */
export type RequestOf<Way extends Method, Path extends string> = Operation<Way, Path>["request"] & CallOptions

/** The answer of an operation. */
export type AnswerOf<Way extends Method, Path extends string> = Operation<Way, Path>["answer"]

type Arguments<Request> = Record<never, never> extends Request ? [request?: Request] : [request: Request]

/** One call: the path with the names of its parameters, and the request. Fails with `Problem`, or as its signal says. */
export type Call<Way extends Method> = <Path extends PathOf<Way>>(
  path: Path,
  ...request: Arguments<RequestOf<Way, Path>>
) => Promise<AnswerOf<Way, Path>>

/** The lists that come in pages. */
export type PagedPath = {
  [Path in PathOf<"GET">]: Operation<"GET", Path>["request"] extends { readonly query?: infer Query }
    ? keyof Query & ("after_id" | "after" | "page") extends never ? never
      // Two lists in one answer are followed by a parameter each.
    : "after_access_id" extends keyof Query ? never
    : Path
    : never
}[PathOf<"GET">]

/** One item of a list. */
export type ItemOf<Path extends string> = AnswerOf<"GET", Path> extends infer Page
  ? Page extends ReadonlyArray<infer Item> ? Item
  : Page extends { readonly items: ReadonlyArray<infer Item> } ? Item
  : never
  : never

/** A client: see `client`. */
export interface Client {
  readonly get: Call<"GET">
  readonly post: Call<"POST">
  readonly put: Call<"PUT">
  readonly patch: Call<"PATCH">
  readonly delete: Call<"DELETE">
  /** The pages of a list, each read when it is asked for. */
  readonly pages: <Path extends PagedPath>(
    path: Path,
    ...request: Arguments<RequestOf<"GET", Path>>
  ) => AsyncGenerator<AnswerOf<"GET", Path>, void, undefined>
  /** The items of all pages of a list. */
  readonly items: <Path extends PagedPath>(
    path: Path,
    ...request: Arguments<RequestOf<"GET", Path>>
  ) => AsyncGenerator<ItemOf<Path>, void, undefined>
  /**
   * Notifications as they come. After a lost connection it goes on where it was, so nothing is missed or repeated. It
   * fails with its signal's reason, or with a problem that waiting does not mend, such as `invalid_credentials`.
   */
  readonly notifications: (
    options?: NotificationsOptions,
  ) => AsyncGenerator<NotificationEvent, void, undefined>
}

interface AnyPage {
  readonly items?: ReadonlyArray<object>
  readonly [name: string]: unknown
}

/** The query of the next page; undefined after the last one. */
const following = (page: AnyPage): Readonly<Record<string, unknown>> | undefined => {
  const of = (more: unknown, query: Readonly<Record<string, unknown>>) => more ? query : undefined
  if ("next_after_id" in page) return of(page["next_after_id"], { after_id: page["next_after_id"] })
  if ("cursor" in page) return of(page["more"], { after: page["cursor"] })
  const last = (page.items ?? page as never as ReadonlyArray<object>).at(-1)
  const number = page["page"] as number
  // Pages count from 0.
  if (number >= 0) return of((number + 1) * (page["limit"] as number) < (page["total"] as number), { page: number + 1 })
  // An item of the other lists begins with its id.
  return of(last, { after_id: Object.values(last ?? {})[0] })
}

/** Makes a client of one installation. */
export const client = (options: ClientOptions = {}): Client => {
  const send = senderOf(options)
  const call = callOf(send, options)
  const way = (method: Method) => (path: string, request?: AnyRequest) => call(method, path, request)

  const pages = async function* (path: string, request: AnyRequest = {}) {
    for (let query = request.query;;) {
      const page = await call("GET", path, { ...request, query: query ?? {} }) as AnyPage
      yield page
      const next = following(page)
      if (!next) return
      query = { ...query, ...next }
    }
  }

  const items = async function* (path: string, request?: AnyRequest) {
    for await (const page of pages(path, request)) yield* page.items ?? page as never
  }

  return {
    get: way("GET"),
    post: way("POST"),
    put: way("PUT"),
    patch: way("PATCH"),
    delete: way("DELETE"),
    pages,
    items,
    notifications: notificationsOf(send),
  } as unknown as Client
}
