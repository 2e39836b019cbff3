/**
 * Text from elsewhere without the characters that change how what stands around it is read: format characters (Cf), which
 * reorder a line (bidi), hide in a name or join its letters to others, go; U+2028 and U+2029, which break a line where
 * no quotation mark follows, become blanks. For what people read: mails, pages, Slack.
 */
export const visible = (text: string): string => text.replaceAll(/\p{Cf}/gu, "").replaceAll(/[\p{Zl}\p{Zp}]/gu, " ")
