/** Makes console/contract/RouteTable.ts of the contract: `deno task console:routes` writes it. */
import { HttpApi } from "effect/http-api"
import { writeFileSync } from "node:fs"
import process from "node:process"
import { pathToFileURL } from "node:url"
import { Api } from "../../schemas/api/Api.ts"

export const routesFile = new URL("../../console/contract/RouteTable.ts", import.meta.url)

/** The text of the file. */
export const consoleRoutes = (): string => {
  const lines: Array<string> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      lines.push(`  ${endpoint.identifier}: ["${endpoint.method}", "${endpoint.path}"],`)
    },
  })
  return `/** Method and path of every endpoint, made of the contract by \`deno task console:routes\`. */
import type { RouteTable } from "./EndpointTypes.ts"

export const routes: RouteTable = {
${lines.sort().join("\n")}
}
`
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) writeFileSync(routesFile, consoleRoutes())
