/**
 * Pages outside of the API and the console: the landing page, the links of notices, those of people's mails, and the
 * files of the transparency log.
 */
import { Layer } from "effect"
import type { AppConfig } from "../AppConfig.ts"
import * as BrandedPages from "../http/pages/BrandedPages.ts"
import * as AppLinks from "../http/pages/AppLinks.ts"
import * as LogRoutes from "../http/pages/LogRoutes.ts"
import * as RequestPages from "../http/pages/RequestPages.ts"

export const pages = ({ brand, console: mode, transfersEnabled: transfers }: AppConfig, publicUrl: URL) => {
  const console = mode !== "off"
  return Layer.mergeAll(
    AppLinks.layer({ console, transfers, name: brand.name }),
    RequestPages.layer({ console, publicUrl }),
    BrandedPages.layer(brand),
    LogRoutes.layer,
  )
}
