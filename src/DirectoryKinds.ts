/** Every kind of directory line, and which sources of identity lines are trusted. */
import { Effect } from "effect"
import { mailKinds } from "../services/accounts/MailKinds.ts"
import type { Trust } from "../services/directory/Directory.ts"
import { identityKinds } from "./IdentityKinds.ts"
import { watchingProjects } from "../services/projects/DirectoryWatch.ts"
import { watchingTransfers } from "../services/transfers/DirectoryListener.ts"
import type { IdentityDirectory } from "./AppConfig.ts"

/** All kinds, for `Directory.layer`. Only the directory's own transaction locks rows of both families. */
export const allKinds = Effect.zipWith(
  watchingTransfers(mailKinds),
  watchingProjects(identityKinds),
  (mail, identity) => [...mail, ...identity],
)

/** How far identity lines from a file are trusted: a user who can apply a file has the database's password. */
export const trustInFiles = (identity: IdentityDirectory): Trust => identity === "off" ? "none" : "follow"

/** How far identity lines from the bus are trusted. */
export const trustInBus = (identity: IdentityDirectory): Trust =>
  identity === "follow" ? "follow" : identity === "files" ? "plain" : "none"
