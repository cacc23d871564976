// Replaces the lines `--- @include NAME` of a Lua text by these includes.
//
// An include may include others. Each appears once in a block, at the first place that asks for it: what stands in a block is not visible
// outside of it, so two functions that create what they need may both ask for the same include. The files are formatted, so a block ends
// where the indentation is less.

/** The includes' Lua by their names. */
export type Includes = Readonly<Record<string, string>>

const INCLUDE = /^ *--- @include (\S+)$/

export function withIncludes(lua: string, includes: Includes): string {
  return `${expanded(lua, includes, new Map(), 0).join('\n')}\n`
}

/** `visible` has the includes that are visible, with the indentation of the blocks that contain them. `depth` is the text's indentation. */
function expanded(lua: string, includes: Includes, visible: Map<string, number>, depth: number): string[] {
  return lua
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const indentation = depth + line.search(/\S/)
      for (const [name, of] of visible) if (of > indentation) visible.delete(name)
      const [, name] = INCLUDE.exec(line) ?? []
      if (name === undefined) return [line]
      if (visible.has(name)) return []
      visible.set(name, indentation)
      const included = includes[name]
      if (included === undefined) throw new Error(`there is no include ${name}`)
      return expanded(included, includes, visible, indentation)
    })
}
