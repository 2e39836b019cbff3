/**
 * The router, and a table of its routes: the template of a path, and its methods. The edge needs both before the router
 * runs (404, 405, the template for audit and logs).
 */
import { Effect } from "effect"
import { FindMyWay, HttpRouter } from "effect/http"

export interface Matched {
  /** `/v1/webhooks/{webhook_id}`. */
  readonly template: string
  readonly params: Readonly<Record<string, string | undefined>>
  /** The parsed query, not decoded by any contract yet. */
  readonly query: Readonly<Record<string, string | Array<string>>>
}

export interface Routes {
  readonly router: HttpRouter.HttpRouter
  readonly find: (method: string, url: string) => Matched | undefined
  /** The template of a path under any method. */
  readonly known: (url: string) => Matched | undefined
  /** The methods of a path, HEAD beside GET; none for an unknown path. */
  readonly methods: (url: string) => ReadonlyArray<string>
}

/** Tokens in paths are longer than the router's default of 100 characters, and case-sensitive. */
export const routerConfig = { maxParamLength: 512, caseSensitive: true, ignoreTrailingSlash: true }

/** Replaces the parameters of a route; a literal colon is doubled there. */
const replaced = (path: string, parameter: (name: string) => string) =>
  path.replaceAll(
    /::|:([A-Za-z0-9_]+)(?:\([^)]*\))?\??/g,
    (_, name: string | undefined) => name === undefined ? ":" : parameter(name),
  )

/** `/v1/webhooks/{webhook_id}` of `/v1/webhooks/:webhook_id`. */
export const templateOf = (path: string) => replaced(path, (name) => `{${name}}`)

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A UUID is the same in capitals; any other id or token is not. */
const idOf = (value: string) => uuid.test(value) ? value.toLowerCase() : value

/**
 * The path of a request from its route and its decoded parameters. A path can be spelled in many ways (`%65` for `e`,
 * slashes at the end, a UUID in capitals) that reach the same handler and the same row; this one is the same for all of
 * them.
 */
export const pathOf = (route: string, params: Readonly<Record<string, string | undefined>>): string =>
  replaced(route, (name) => encodeURIComponent(idOf(params[name] ?? "")))

const verbs = ["GET", "POST", "PUT", "PATCH", "DELETE"]

export const make = Effect.gen(function* () {
  const inner = yield* HttpRouter.make
  const table = FindMyWay.make<string>(routerConfig)

  const record = (method: string, path: HttpRouter.PathInput) => {
    const methods = method === "*" ? verbs : [method]
    table.on(methods, path, templateOf(path))
    if (path.endsWith("/*")) table.on(methods, path.slice(0, -2) as HttpRouter.PathInput, templateOf(path))
  }

  const recording = (router: HttpRouter.HttpRouter, prefix: string): HttpRouter.HttpRouter => {
    const placed = (path: string) =>
      (prefix === "" ? path : HttpRouter.prefixPath(path, prefix)) as HttpRouter.PathInput
    return {
      ...router,
      prefixed: (more) => recording(router.prefixed(more), placed(more)),
      addAll: (routes) => {
        for (const route of routes) record(route.method, placed(route.path))
        return router.addAll(routes)
      },
      add: (method, path, handler, options) => {
        record(method, placed(path))
        return router.add(method, path, handler, options)
      },
    }
  }

  const lookUp = (method: string, url: string): Matched | undefined => {
    const found = table.find(method, url)
    return found && { template: found.handler, params: found.params, query: found.searchParams }
  }
  const routes: Routes = {
    router: recording(inner, ""),
    find: (method, url) => lookUp(method, url) ?? (method === "HEAD" ? lookUp("GET", url) : undefined),
    known: (url) => verbs.map((verb) => lookUp(verb, url)).find((found) => found !== undefined),
    methods: (url) =>
      verbs.filter((verb) => lookUp(verb, url) !== undefined).flatMap((verb) =>
        verb === "GET" ? ["GET", "HEAD"] : [verb]
      ),
  }
  return routes
}).pipe(Effect.provideService(HttpRouter.RouterConfig, routerConfig))

/** The template with the UUIDs of its parameters: tokens and foreign ids are left out, since they may be secret. */
export const instanceOf = (matched: Matched | undefined): string =>
  matched === undefined ? "/{unknown}" : matched.template.replaceAll(/\{([A-Za-z0-9_]+)\}/g, (braced, name: string) => {
    const value = matched.params[name]
    return value !== undefined && uuid.test(value) ? idOf(value) : braced
  })
