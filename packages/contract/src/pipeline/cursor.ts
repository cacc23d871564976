// Marks items of a source with the position after which the source can resume.

const CURSOR: unique symbol = Symbol('cursor')

/** An item with the position from which the source can resume after it. */
export interface At<Item> {
  readonly [CURSOR]: unknown
  readonly item: Item
}

/**
 * Returns an item with a cursor: JSON of at most 4 KiB with which the source can resume after this item. Each item needs a
 * cursor of its own. When the source runs again, it receives the cursor of the last item that Bullpen has received, and must
 * yield only the items after that one. Bullpen does not interpret cursors. If the source yields its first item or the one at
 * its cursor again, the run fails with `source_changed`. Other items that it yields again are processed twice.
 *
 * @example yield at(path, { path })
 */
export function at<Item>(cursor: unknown, item: Item): At<Item> {
  return { [CURSOR]: cursor, item }
}

/** Returns an item that a source has yielded, and its cursor if it has one. */
export function unmarked<Item>(yielded: Item | At<Item>): { readonly item: Item; readonly cursor?: unknown } {
  if (typeof yielded !== 'object' || yielded === null || !(CURSOR in yielded)) return { item: yielded as Item }
  const { item, [CURSOR]: cursor } = yielded
  return { item, cursor }
}
