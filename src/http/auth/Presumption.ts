/**
 * The presumed caller of a request, whom the command's own statement still has to recognise; null where the caller is
 * recognised already.
 */
import { Context } from "effect"
import type { Presumed } from "../../../services/people/CallerAuthentication.ts"

export class Presumption
  extends Context.Reference<Presumed | null>("bailiwick/http/auth/Presumption", { defaultValue: () => null }) {}
