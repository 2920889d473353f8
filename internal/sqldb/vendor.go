package sqldb

import (
	"fmt"
	"strings"
)

// Vendors are products that speak the protocol of a supported database without being one. Word, in lower case, is in
// what their servers say about themselves. Of several words in one text, the first of the list counts.
type Vendors []struct{ Word, Product string }

// Refuse returns an error if a server of one of the products has said one of these texts.
func (v Vendors) Refuse(says ...string) error {
	for _, text := range says {
		for _, vendor := range v {
			if strings.Contains(strings.ToLower(text), vendor.Word) {
				return Unsupported(vendor.Product, text)
			}
		}
	}
	return nil
}

// Unsupported returns the error of a server that is a product with which the promises of the roster may not hold. says
// is what the server says about itself.
func Unsupported(product, says string) error {
	return fmt.Errorf("this server is %s (it says %q), which Rota does not support: use PostgreSQL 14, MariaDB 10.6, "+
		"MySQL 8.0, TiDB 8.5, or a newer one, or SQLite", product, says)
}
