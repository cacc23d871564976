// Creates and remembers one value per key, such as the series of a label.

/**
 * Returns a function that creates the value for a key on the first call and returns the stored value from then on. Callers nest
 * these functions, because joining two keys into one costs more than two look-ups.
 */
export function remembered<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>()
  return (key) => {
    let value = made.get(key)
    if (value === undefined) {
      value = make(key)
      made.set(key, value)
    }
    return value
  }
}
