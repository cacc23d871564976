// Colours text on terminals that support colours.
import { styleText } from 'node:util'

export type Style = 'red' | 'green' | 'yellow' | 'blue' | 'cyan'
export type Paint = (style: Style, text: string) => string

/** Colours text if `stream` is a terminal that supports colours and NO_COLOR is not set. */
export function painter(stream: NodeJS.WritableStream): Paint {
  return (style, text) => styleText(style, text, { stream })
}
