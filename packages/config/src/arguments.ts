// Reads a command line into flags with values. Nothing is an error here: settings.ts lists all faults at once.
import { parseArgs } from 'node:util'

export interface Argument {
  /** Without the dashes; undefined for an argument that belongs to no flag. */
  readonly flag: string | undefined
  readonly value: string | undefined
}

/** `flags`: those that take a value, written `--flag value` or `--flag=value`. */
export function readArguments(flags: readonly string[], argv: readonly string[]): readonly Argument[] {
  const options = Object.fromEntries(flags.map((flag) => [flag, { type: 'string' as const }]))
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true })
  const found: Argument[] = []
  let lastUnknown = -2
  for (const token of tokens) {
    if (token.kind === 'positional') {
      // What follows an unknown flag is that flag's value.
      if (token.index !== lastUnknown + 1) found.push({ flag: undefined, value: token.value })
    } else if (token.kind === 'option') {
      const isKnown = flags.includes(token.name)
      if (!isKnown && !token.inlineValue) lastUnknown = token.index
      // `--port --host x`: the next flag is no value.
      const isFlag = token.inlineValue === false && token.value.startsWith('--')
      found.push({ flag: token.name, value: isFlag ? undefined : token.value })
    }
  }
  return found
}
