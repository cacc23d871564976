// Splits a command line into flags and their values. Mistakes are reported by settings.ts, which lists all of them at once.
import { parseArgs } from 'node:util'

export interface Argument {
  /** The flag without its dashes, or undefined if the argument does not belong to a flag. */
  readonly flag: string | undefined
  readonly value: string | undefined
  /** The nearest flag before the argument. */
  readonly previous: string | undefined
}

/**
 * Splits `argv` into arguments. `flags` lists the flags that take a value, which is written as `--flag value` or `--flag=value`.
 */
export function readArguments(flags: readonly string[], argv: readonly string[]): readonly Argument[] {
  const options = Object.fromEntries(flags.map((flag) => [flag, { type: 'string' as const }]))
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true })
  const found: Argument[] = []
  let lastUnknown = -2
  let previous: string | undefined
  for (const token of tokens) {
    if (token.kind === 'positional') {
      // An argument that follows an unknown flag is treated as the value of that flag.
      if (token.index !== lastUnknown + 1) found.push({ flag: undefined, value: token.value, previous })
    } else if (token.kind === 'option') {
      const isKnown = flags.includes(token.name)
      if (!isKnown && !token.inlineValue) lastUnknown = token.index
      // In `--port --host x`, `--host` is the next flag and not the value of `--port`.
      const isFlag = token.inlineValue === false && token.value.startsWith('--')
      found.push({ flag: token.name, value: isFlag ? undefined : token.value, previous })
      previous = token.name
    }
  }
  return found
}
