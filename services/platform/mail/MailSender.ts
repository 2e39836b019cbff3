/** The sender of mail, from the configuration. */
import { parse } from "./MailAddress.ts"

/** The name and address in the From header of mail. */
export interface MailSender {
  readonly name: string
  readonly address: string
}

/** `Name <address>` or an address alone; null where that is neither. */
export const parseSender = (text: string): MailSender | null => {
  const open = text.indexOf("<")
  const name = open < 0 ? "" : /^"?([^"<>\p{Cc}]*)"?$/u.exec(text.slice(0, open).trim())?.[1]
  const address = (open < 0 ? text : /^<([^<>]*)>$/.exec(text.slice(open).trim())?.[1])?.trim()
  return name === undefined || address === undefined || parse(address) === null ? null : { name, address }
}
