// Finds an option that a command line names twice although it has one value. `parseArgs` would use the last value without a word.

/** A token of `parseArgs` from `node:util`. */
interface Token {
  readonly kind: string
  readonly name?: string
}

type Options = Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly multiple?: boolean }>>

/** Returns the name of the first such option. An option without a value says the same however often it is given. */
export function repeatedOption(tokens: readonly Token[], options: Options): string | undefined {
  const named = new Set<string>()
  for (const { kind, name = '' } of tokens) {
    const option = kind === 'option' ? options[name] : undefined
    if (option?.type !== 'string' || option.multiple === true) continue
    if (named.has(name)) return name
    named.add(name)
  }
  return undefined
}
