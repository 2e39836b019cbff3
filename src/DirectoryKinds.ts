/** Every kind of the directory, and whose word on them is taken. */
import { Effect } from "effect"
import { mailKinds } from "../services/accounts/MailKinds.ts"
import type { Trust } from "../services/directory/Directory.ts"
import { identityKinds } from "./IdentityKinds.ts"
import { watchingProjects } from "../services/projects/DirectoryWatch.ts"
import { watchingTransfers } from "../services/transfers/DirectoryWatch.ts"
import type { IdentityDirectory } from "./AppConfig.ts"

/** Registers with `Directory.layer`. No transaction but the directory's own locks rows of both families. */
export const allKinds = Effect.zipWith(
  watchingTransfers(mailKinds),
  watchingProjects(identityKinds),
  (mail, identity) => [...mail, ...identity],
)

/** Whether identity lines of a file are taken: whoever can apply one has the database's password. */
export const trustInFiles = (identity: IdentityDirectory): Trust => identity === "off" ? "none" : "follow"

/** Whether identity lines of the bus are taken. */
export const trustInBus = (identity: IdentityDirectory): Trust =>
  identity === "follow" ? "follow" : identity === "files" ? "plain" : "none"
