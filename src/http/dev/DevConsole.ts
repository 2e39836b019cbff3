/** `GET /dev/console?key=…`: gives the browser the dev key, which the demo's sign-in asks for, and opens the console. */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { guarded } from "./DevKey.ts"

export const devConsolePath = "/dev/console"

const opened = HttpServerResponse.empty({
  status: 303,
  headers: { location: "/console/", "cache-control": "no-store" },
})

export const layer = HttpRouter.add("GET", devConsolePath, guarded(Effect.succeed(opened)))
