/** The pages for people outside of the console: the landing page, the links of notices, and those of people's mails. */
import { Layer } from "effect"
import type { AppConfig } from "../AppConfig.ts"
import * as AppLinks from "../http/pages/AppLinks.ts"
import * as RequestPages from "../http/pages/RequestPages.ts"

export const pages = ({ console: mode, transfersEnabled: transfers }: AppConfig, publicUrl: URL) => {
  const console = mode !== "off"
  return Layer.merge(AppLinks.layer({ console, transfers }), RequestPages.layer({ console, publicUrl }))
}
