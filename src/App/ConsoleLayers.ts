/** The web console: its sessions, its sign-in, and what the APIs take its cookie for. */
import { Effect, Layer } from "effect"
import type { ConsoleIssuer } from "../../services/console/ConfiguredConsoleIssuer.ts"
import { ConsoleSessions } from "../../services/console/ConsoleSessions.ts"
import { ConsoleVisitors } from "../../services/console/ConsoleVisitors.ts"
import { EmbedLinks } from "../../services/console/EmbedLinks.ts"
import { OpenIdClient } from "../../services/console/OpenIdClient.ts"
import type { AppConfig } from "../AppConfig.ts"
import { ConsoleAuth } from "../http/auth/ConsoleAuth.ts"
import { EmbedAuth } from "../http/auth/EmbedAuth.ts"
import { demoIssuer } from "../embedded/DemoIdentity.ts"
import * as ConsoleAssets from "../http/console/ConsoleAssets.ts"
import { buildConsole } from "../http/console/ConsoleBuild.ts"
import * as ConsoleSignIn from "../http/console/ConsoleSignIn.ts"
import { demoClientId } from "../http/dev/DevIssuer.ts"
import { consoleHandlers } from "../http/handlers/ConsoleHandlers.ts"
import { relyingPartyOf } from "./IdentityLayers.ts"

/** The demo's only issuer, which signs in people and mail accounts alike. */
const embedded = (issuer: string): ConsoleIssuer => ({
  issuer,
  name: "the demo",
  clientId: demoClientId,
  clientSecret: null,
  scope: "openid",
  resource: null,
})

/** Sessions, visitors and the sign-in. `embeddedIssuer` is the URL of DEMO's issuer. */
export const consoleServices = (config: AppConfig, publicUrl: URL, embeddedIssuer: string) => {
  const issuers = config.demo ? [embedded(embeddedIssuer)] : config.consoleIssuers
  const mailIssuers = config.demo ? [embeddedIssuer] : config.mailIssuers.map(({ issuer }) => issuer)
  const names = new Map(config.demo ? [[embeddedIssuer, demoIssuer]] : [])
  return ConsoleVisitors.layer.pipe(
    Layer.provideMerge(EmbedLinks.layer),
    Layer.provideMerge(ConsoleSessions.layer(new Set(mailIssuers), names)),
    Layer.provideMerge(OpenIdClient.layer(issuers, publicUrl)),
  )
}

/** Lets the APIs take the console's cookie; with `CONSOLE=off` they do not know it. */
export const consoleAuth = ({ console: mode }: AppConfig, publicUrl: URL) =>
  mode === "off" ? Layer.empty : Layer.merge(ConsoleAuth.layer(publicUrl, mode), EmbedAuth.layer(mode))

/** Handlers of the console's group. */
export const consoleHandlersOf = (config: AppConfig, publicUrl: URL) =>
  consoleHandlers({
    publicUrl,
    mode: config.console,
    transfers: config.transfersEnabled,
    brand: config.brand,
    embeds: config.console !== "off" && config.embedOrigins.length > 0,
    passkeyDomain: relyingPartyOf(config, publicUrl).id,
  })

/** The console's own paths; none with `CONSOLE=off`. */
export const consoleRoutes = ({ console: mode, embedOrigins }: AppConfig, publicUrl: URL) =>
  mode === "off" ? Layer.empty : Layer.merge(ConsoleSignIn.layer(publicUrl, mode), ConsoleAssets.layer(embedOrigins))

/** Builds the screens where their sources have changed; a request for them says why where that fails. */
export const prepareConsole = ({ console: mode }: AppConfig) =>
  mode === "off" ? Effect.void : Effect.ignore(Effect.tryPromise(() => buildConsole()))
