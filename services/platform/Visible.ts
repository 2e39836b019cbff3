/**
 * Cleans text from outside, for mails, pages and Slack, of characters that change how the text around it is read:
 * format characters (Cf), which reorder a line (bidi), hide in a name or join its letters to others, are removed;
 * U+2028 and U+2029, which break a line without a quotation mark, become blanks.
 */
export const visible = (text: string): string => text.replaceAll(/\p{Cf}/gu, "").replaceAll(/[\p{Zl}\p{Zp}]/gu, " ")
