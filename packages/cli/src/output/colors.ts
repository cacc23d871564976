// Colours, where somebody looks and wants them.
import { styleText } from 'node:util'

export type Style = 'red' | 'green' | 'yellow' | 'blue' | 'cyan'
export type Paint = (style: Style, text: string) => string

/** Colours when `stream` is a terminal that has them, and NO_COLOR is not set. */
export function painter(stream: NodeJS.WritableStream): Paint {
  return (style, text) => styleText(style, text, { stream })
}
