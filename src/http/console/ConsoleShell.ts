/** The page that every address of the console gets: it holds no data of a person; its scripts ask the API. */
import { brandStylePath } from "../pages/BrandedPages.ts"

export const assetsPath = "/console/assets"

export interface ShellFiles {
  readonly script: string
  readonly style: string
  /** The modules that the script imports at once. */
  readonly chunks: ReadonlyArray<string>
}

export const consolePage = ({ chunks, script, style }: ShellFiles): string =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Console</title>
<link rel="icon" href="${assetsPath}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${assetsPath}/${style}">
<link rel="stylesheet" href="${brandStylePath}">
<script type="module" src="${assetsPath}/${script}"></script>
${chunks.map((chunk) => `<link rel="modulepreload" href="${assetsPath}/${chunk}">\n`).join("")}</head>
<body>
<noscript><main>
<h1>The console needs JavaScript</h1>
<p>Allow scripts for this address, then load the page anew. Every script comes from here, none from elsewhere.</p>
<p>What the console does, <a href="/v1/docs">the API</a> does without scripts.</p>
</main></noscript>
</body>
</html>
`

/** A key, for the tab. */
export const icon =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0550ae"/>` +
  `<path d="M11 11a5 5 0 1 1 3 9l-1 1v2h-2v2H8v-3l5-5a5 5 0 0 1-2-6z" fill="#fff"/></svg>`

/** The page that other origins may frame, and whose fragment is the token of an embed link. */
export const embedPath = "/console/embed"

/** No other origin, no inline script or style, no way to make script of text. */
const policy = (ancestors: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "form-action 'none'",
    `frame-ancestors ${ancestors}`,
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ")

/** The headers of the shell. */
export const shellHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": policy("'none'"),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // Asked for each time, and answered by 304: the next version's files have other names.
  "cache-control": "no-cache",
  vary: "accept-encoding",
}

/** The headers of the page in a frame of one of these origins. */
export const embedHeaders = (origins: ReadonlyArray<string>): Readonly<Record<string, string>> => ({
  "content-security-policy": policy(origins.join(" ")),
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
  vary: "accept-encoding",
})

/** The headers of a file, whose name has its hash. */
export const assetHeaders: Readonly<Record<string, string>> = {
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "public, max-age=31536000, immutable",
  vary: "accept-encoding",
}
