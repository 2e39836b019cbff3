/** Builds sdk/inbox for npm: one ESM file and its types. `deno task inbox` writes sdk/inbox/dist. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { pathToFileURL } from "node:url"
import { buildPackage, installPackage, scriptOf, sdkPackage } from "./SdkPackage.ts"

const inboxPackage = sdkPackage("inbox", "InboxElement.ts", "inbox.js")

export const inboxFolder = inboxPackage.folder

/** The JavaScript of the package. */
export const inboxScript = (): Promise<Uint8Array> => scriptOf(inboxPackage)

/** Packs the package and installs the tarball into a folder with nothing else, both within `folder`. */
export const installInbox = (folder: string) => installPackage(inboxPackage, folder)

/** The snippets of the README in this language, in its order. */
export const inboxSnippets = (language: string): ReadonlyArray<string> =>
  [...readFileSync(join(inboxFolder, "README.md"), "utf8").matchAll(/```(\w+)\n([\s\S]*?)```/g)]
    .flatMap(([, of, text]) => of === language ? [text!] : [])

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  await buildPackage(inboxPackage, join(inboxFolder, "dist"))
}
