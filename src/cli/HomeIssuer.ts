/** The embedded issuer of the instance's home, with the same name as in the program (DEMO). */
import { Effect, Layer, Option } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { originAt } from "../AppConfig.ts"
import { EmbeddedIssuer, issuerKeyFile } from "../embedded/EmbeddedIssuer.ts"
import { CliFault } from "./CliFault.ts"
import { instance } from "./Instance.ts"
import { startCommand } from "../../services/platform/CommandSpelling.ts"

/** Fails where the home has no key: no program would trust tokens of a new one. */
export const homeIssuer = Layer.unwrap(Effect.gen(function* () {
  const { config, runtime } = yield* instance
  if (!existsSync(join(config.home, issuerKeyFile))) {
    return yield* new CliFault({
      message: `BAILIWICK_HOME=${config.home} has no embedded issuer: type "${startCommand}" once with DEMO=true`,
    })
  }
  const origin = config.publicUrl ?? Option.match(runtime, {
    onNone: () => originAt(config),
    onSome: ({ http_url, public_url }) => public_url ?? http_url,
  })
  return EmbeddedIssuer.layer({ home: config.home, issuer: new URL("/dev/issuer", origin).href })
}))
